"""The default rules: what is a secret, what only looks like one, and what becomes of the text around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.secrets import DEFAULT_RULES, REDACTED, SecretDetector

DETECTOR = SecretDetector()
MIXED = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
HEX = "0123456789abcdef" * 3
BODY = "\n".join(["MIIEpAIBAAKCAQEA" + MIXED[:40]] * 4)
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----"

WHOLE = {
    "generic-key": ["sk-abcdefgh", "key-12345678", "token-A_b-C_d-", "secret-aaaaaaaa"],
    "anthropic-key": [f"sk-ant-api03-{MIXED}"],
    "openai-key": [f"sk-proj-{MIXED}", f"sk-svcacct-{MIXED}"],
    "openrouter-key": [f"sk-or-v1-{HEX}"],
    "huggingface-token": [f"hf_{MIXED[:34]}"],
    "groq-key": [f"gsk_{MIXED}"],
    "xai-key": [f"xai-{MIXED}"],
    "replicate-token": [f"r8_{MIXED[:37]}"],
    "perplexity-key": [f"pplx-{MIXED}"],
    "nvidia-key": [f"nvapi-{MIXED}"],
    "fireworks-key": [f"fw_{MIXED[:24]}"],
    "together-key": [f"tgp_v1_{MIXED}"],
    "cerebras-key": [f"csk-{MIXED}"],
    "jina-key": [f"jina_{MIXED}"],
    "tavily-key": [f"tvly-dev-{MIXED}"],
    "langsmith-key": [f"lsv2_pt_{HEX[:32]}_0123456789"],
    "aws-access-key-id": ["AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE"],
    "google-api-key": [f"AIza{MIXED[:35]}"],
    "google-oauth-token": [f"ya29.a0{MIXED}", f"1//0{MIXED}"],
    "google-client-secret": [f"GOCSPX-{MIXED[:28]}"],
    "digitalocean-token": [f"dop_v1_{HEX}"],
    "databricks-token": [f"dapi{HEX[:32]}"],
    "vault-token": [f"hvs.{MIXED}"],
    "terraform-token": [f".atlasv1.{MIXED}"],
    "github-token": [f"{kind}_{MIXED[:36]}" for kind in ("ghp", "gho", "ghu", "ghs", "ghr")]
    + [f"github_pat_11ABCDEFG0{MIXED[:12]}_{MIXED}"],
    "gitlab-token": [f"glpat-{MIXED[:20]}", f"gldt-{MIXED[:20]}", f"glpat-{MIXED[:27]}.01.0z0abc123"],
    "npm-token": [f"npm_{MIXED[:36]}"],
    "pypi-token": [f"pypi-AgEIcHlwaS5vcmc{MIXED}"],
    "rubygems-key": [f"rubygems_{HEX}"],
    "docker-token": [f"dckr_pat_{MIXED[:27]}"],
    "atlassian-token": [f"ATATT3xFfGF0{MIXED}=6A1B"],
    "slack-token": [f"xoxb-123456789012-1234567890123-{MIXED[:24]}", f"xapp-1-A0-123-{MIXED}"],
    "stripe-key": [f"sk_live_{MIXED[:24]}", f"rk_test_{MIXED[:24]}", f"whsec_{MIXED[:32]}"],
    "sendgrid-key": [f"SG.{MIXED[:22]}.{MIXED}abc"],
    "shopify-token": [f"shpat_{HEX[:32]}"],
    "service-token": [f"lin_api_{MIXED}", f"figd_{MIXED}", f"glsa_{MIXED[:32]}_0a1b2c3d"],
    "age-key": ["AGE-SECRET-KEY-1" + "Q" * 58],
    "private-key": [
        PEM,
        PEM.replace("\n", "\\n"),
        PEM.replace("RSA ", ""),
        PEM.replace("\n", "\r\n"),
        PEM.replace(
            "RSA PRIVATE KEY-----\n", "RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n", 1
        ),
        PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
    ],
    "jwt": [f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{MIXED}"],
}

# What leads to the secret stays readable, the part between the braces does not.
PARTIAL = {
    "aws-secret-key": [
        "aws_secret_access_key = {wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY}",
        'export AWS_SECRET_ACCESS_KEY="{wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY}"',
        '"SecretAccessKey": "{wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY}"',
        '\\"secretAccessKey\\":\\"{wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY}\\"',
    ],
    "aws-session-token": ["aws_session_token={" + MIXED * 2 + "}"],
    "azure-account-key": ["AccountName=x;AccountKey={" + MIXED + "==};EndpointSuffix=core"],
    "azure-signature": ["https://a.blob/x?sv=1&sig={" + MIXED + "%3D}&se=2", "?a=1&amp;sig={" + MIXED + "}"],
    "azure-client-secret": ["abc8{Q~" + MIXED[:34] + "}"],
    "slack-webhook": ["https://hooks.slack.com/services/{T000/B000/XXXXXXXXXXXXXXXXXXXXXXXX}"],
    "authorization": [
        "Authorization: {Bearer abc.def-ghi}",
        "authorization: {Basic dXNlcjpwYXNz}",
        "-H 'Authorization: {token ghs12345}'",
        '"Authorization": "{abcdef123456}"',
        'Authorization: {Digest username="a", response="b"}',
        "AUTHORIZATION={s3cr3tvalue}",
    ],
    "bearer-token": [
        "Bearer {abcdefghijk1}",
        "bearer {mysecrettoken}",
        "got Bearer  {a.b-c_d~e+f/g=}",
        "q=Bearer%20{abcdefgh1}",
    ],
    "connection-password": [
        "postgres://user:{hunter2}@db.example.org/app",
        "redis://:{hunter2}@cache:6379",
        "postgres://u:{p@ss:word}@host/db",
        "mysql:\\/\\/u:{pw}@h",
        "mongodb+srv://u:{p%40ss}@cluster0.example.net/?retryWrites=true",
        "https://u:{pw}@host and https://v:{pw2}@host",
        "Server=x;Password={hunter2};Database=y",
        "host=a password={hunter2} dbname=x",
        "DB_PASSWORD={hunter2}",
        "jdbc:postgresql://h/db?user=a&password={hunter2}&ssl=true",
    ],
    "api-key": ["x-api-key: {0123456789abcdef0123456789abcdef}", 'api_key = "{abcdef0123456789abcdef}"'],
}

CLEAN = [
    "task-management-system",
    "task-scheduler-v2.py",
    "disk-usage-2024-11.csv",
    "Monkey-Business-Time",
    "sk-1234567",
    "an sk- prefix and a key- prefix",
    "bearer authentication is what the server wants",
    "Authorization: required for all",
    "headers['Authorization'] = f'Bearer {token}'",
    "def check(authorization: Optional[str]) -> None: ...",
    "'ASAuthorization', 'ASAuthorizationAppleIDButton'",
    "http://localhost:8080/users/@me?mail=a@b.example",
    "https://example.org/path, mail me@example.org",
    "postgres://{user}:{password}@host",
    "postgres://$DB_USER:$DB_PASSWORD@host",
    "postgres://u:${DB_PASSWORD}@host",
    "connect(user=a, password=b)",
    "connect(\n    password=password,\n)",
    "password=None\n",
    "api_key=os.environ['API_KEY_2_FOR_THE_SERVICE']",
    "api_key = get_api_key_from_env_v2(x)",
    "BEGIN = '-----BEGIN OPENSSH PRIVATE KEY-----'\nEND = '-----END OPENSSH PRIVATE KEY-----'",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "eyJhbGci alone, eyJ.eyJ.x and a.b.c",
    "AKIA is a prefix; AKIASHORT is none",
    "SG.short.x",
]


@pytest.mark.parametrize(("rule", "secret"), [(rule, secret) for rule, secrets in WHOLE.items() for secret in secrets])
@pytest.mark.parametrize(
    "around", ["{}", "a {} b", '"{}"', "x={};", "<{}>", "\\n{}\\n", "\x1b[01;31m{}\x1b[m", "é{}\n"]
)
def test_a_secret_goes_as_a_whole_wherever_it_stands(rule: str, secret: str, around: str) -> None:
    text = around.replace("{}", secret)
    assert DETECTOR.scrub(text) == around.replace("{}", REDACTED)
    assert {match.rule for match in DETECTOR.find(text)} == {rule}


@pytest.mark.parametrize(
    ("rule", "sample"), [(rule, sample) for rule, samples in PARTIAL.items() for sample in samples]
)
def test_what_leads_to_a_secret_stays(rule: str, sample: str) -> None:
    pieces = sample.replace("{", "\0{").replace("}", "\0").split("\0")
    text = "".join(piece.removeprefix("{") for piece in pieces)
    expected = "".join(REDACTED if piece.startswith("{") else piece for piece in pieces)
    assert DETECTOR.scrub(text) == expected
    assert {match.rule for match in DETECTOR.find(text)} == {rule}


def test_every_rule_has_a_sample() -> None:
    assert {rule.name for rule in DEFAULT_RULES} == WHOLE.keys() | PARTIAL.keys()


def test_a_key_block_that_was_cut_off_goes_as_far_as_it_reaches() -> None:
    assert DETECTOR.scrub(f"a {PEM[:120]}") == f"a {REDACTED}"
    assert DETECTOR.scrub(f"{PEM[:120]}... 90 more lines") == f"{REDACTED}... 90 more lines"


@pytest.mark.parametrize("text", CLEAN)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert DETECTOR.scrub(text) is text
    assert DETECTOR.find(text) == []


def test_a_key_joined_to_a_word_is_told_from_words_by_what_it_looks_like() -> None:
    assert DETECTOR.scrub("ask-AbC123xyz9") == f"a{REDACTED}"
    assert DETECTOR.scrub("ask-abcdefgh123") == f"a{REDACTED}"
    assert DETECTOR.scrub("task-deadbeef12") == "task-deadbeef12"
    assert DETECTOR.scrub("0sk-abcdefgh") == f"0{REDACTED}"


def test_a_secret_in_the_part_that_leads_to_another_goes_too() -> None:
    user = f"ghp_{MIXED[:36]}"
    assert DETECTOR.scrub(f"https://{user}:x-oauth-basic@github.com") == f"https://{REDACTED}:{REDACTED}@github.com"
    assert [match.rule for match in DETECTOR.find(f"https://{user}:x-oauth-basic@h")] == [
        "github-token",
        "connection-password",
    ]


@given(
    st.sampled_from(["sk-", "key-", "token-", "secret-"]),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", min_size=8, max_size=80),
    st.one_of(st.just(""), st.from_regex(r"[^A-Za-z]", fullmatch=True)),
    st.text(max_size=20),
)
def test_the_general_shape_never_gets_through(start: str, rest: str, before: str, after: str) -> None:
    secret = start + rest
    assert secret not in DETECTOR.scrub(f"{before}{secret}{after}")


@given(
    st.lists(
        st.one_of(st.text(max_size=30), st.sampled_from([text for texts in WHOLE.values() for text in texts])),
        max_size=8,
    )
)
def test_scrubbing_twice_changes_nothing_more(parts: list[str]) -> None:
    once = DETECTOR.scrub(" ".join(parts))
    assert DETECTOR.scrub(once) is once
