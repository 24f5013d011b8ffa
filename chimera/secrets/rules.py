"""The shapes of well-known credentials.

Every rule starts with a literal text, so that one pass of a literal search finds all the places worth a look, and no
rule can be made to look far ahead again and again: what is open-ended either succeeds or stops where the next try
begins. Together that keeps the cost linear in the length of the text, whatever the text is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

__all__ = ["DEFAULT_RULES", "LOOK_AHEAD", "LOOK_BACK", "SecretRule"]

LOOK_BACK = 16
"""How many characters before its start one of the default rules looks at, at most."""

LOOK_AHEAD = 1 << 13
"""How many characters behind its start one of the default rules looks at, at most, before it says no, unless it is
`endless`."""

_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def _but(characters: str) -> str:
    """Return the class of all characters but white space and these; a class that is no negation is found quicker."""
    ends = sorted({-1, *map(ord, _SPACES + characters), 0x110000})
    ranges = [rf"\U{before + 1:08x}-\U{after - 1:08x}" for before, after in pairwise(ends) if after - before > 1]
    return f"[{''.join(ranges)}]"


_ALNUM = "[A-Za-z0-9]"
_WORD = "[A-Za-z0-9_]"
_TOKEN = "[A-Za-z0-9_-]"
_BASE64 = "[A-Za-z0-9+/]"
_BEARER = "[A-Za-z0-9._~+/=-]"
_ASSIGN = r"""\\?["']?\]?[ \t]{0,4}(?:=>|:=|[:=,])\s{0,4}\\?["']?"""
_PROSE = (
    r"(?!(?:[Aa]uthenticat|[Aa]uthori[sz]|credential|challenge|security|instrument|certificate|protocol|mechanism"
    r"|required|optional|provided|supported|received|expected|according|containing)[a-z]{0,5}[.,:;]?(?:[\s\"')]|\Z))"
)
_PLACEHOLDER = r"(?!\$?\{[^{}\s]{0,64}\}@|\$\w{1,64}@|%s@|\*{1,64}@|\[redacted\]@)"


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One named shape: one of the literal `starts`, then `rest`, a regular expression.

    The whole match is the secret, or the group `secret` of `rest` where there is one. `edge` says what may stand
    before a start: `any` text; `token`: no letter or digit, unless it ends an escape (`\\n`, `%20`, a terminal colour);
    `run`: the same, and no `-` or `_` either; `word`: like `token`, or a letter when what follows does not read like
    plain words (as it does in `task-scheduler`).
    An empty start gives up the literal search: the rule is then tried at every place of the text.
    `rest` may use named groups but no numbered back references.

    Where `lead`, a regular expression, is given, start and lead are kept, and only what `rest` matches is the secret.
    That says the same as a group `secret`; neither expression has groups of its own then.

    The default rules promise more, so that a text full of secrets can be cut many at once: `rest` never matches the
    empty text, what leads to a secret holds no match of the same rule, none looks back further than `LOOK_BACK`, and
    those that may look ahead further than `LOOK_AHEAD` say that they are `endless`.
    """

    name: str
    starts: tuple[str, ...]
    rest: str
    edge: Literal["any", "token", "run", "word"] = "any"
    lead: str | None = None
    endless: bool = False

    def before(self, start: str) -> str:
        """Return the regular expression that looks back, from the end of `start`, to what stands before it."""
        return _edge(start, self.edge)


def _edge(start: str, edge: str) -> str:
    if edge == "any":
        return ""
    joined = "A-Za-z0-9_-" if edge == "run" else "A-Za-z0-9"
    before = (
        rf"(?<![{joined}]{{}})|(?<=[\\\[;0-9A-Fa-f].{{}})"  # the second one is a cheap gate for the four that are not
        r"(?:(?<=[\\\[;][A-Za-z]{})|(?<=[%\[;][0-9A-Fa-f][0-9A-Fa-fm]{})"
        r"|(?<=(?:\\x[0-9A-Fa-f]{2}|[\[;][0-9]{2}m){})|(?<=\\u00[0-9A-Fa-f]{2}{}))"
    ).replace("{}", re.escape(start))
    if edge == "word":
        before += f"|(?<=[0-9]{re.escape(start)})|{_not_plain_words()}"
    return f"(?>{before})"  # once it holds there is no use in another way to show it


def _not_plain_words() -> str:
    """Refuse what reads like words and small numbers joined by hyphens; the first three parts are enough to tell."""
    word = r"(?>(?:(?:[A-Z]?[a-z]{1,20}){1,4}|[A-Z]{1,15})[0-9]{0,2}|[0-9]{0,4})"
    words = rf"(?>{word}(?:[-_]{{1,4}}{word}){{0,2}})(?![A-Za-z0-9])"
    common = r"(?>[a-z]{1,20})[-_](?>[a-z]{1,20})(?![A-Za-z0-9])"  # decided quickly, since much of it is in any text
    return f"(?!{common}|{words})"


def _prefixed(name: str, starts: str, chars: str, least: int, edge: Literal["any", "token"] = "any") -> SecretRule:
    return SecretRule(name, tuple(starts.split()), rf"{chars}{{{least},}}+", edge)


_KEY_BODY = r"(?:\s|\\[rn]){0,8}[A-Za-z0-9+/=,: ]{8,}(?:[A-Za-z0-9+/=,:\s]++|\\[rn])*+"
_PRIVATE_KEY = (
    r"(?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:(?=(?:[^-]|-(?!-)){{0,300}}?{_BASE64}{{24}})(?:[^-]++|-(?!----))*+-----END [A-Z0-9 ]{{0,64}}-----"
    rf"|{_KEY_BODY})"
)
_AUTHORIZATION = (
    r"(?:Digest|Hawk|AWS4-HMAC-SHA256)[ \t][^\r\n]{8,4096}"
    rf"|(?:Basic|Bearer|Token|token|bearer|basic|ApiKey|Negotiate|Key)[ \t]{{1,4}}{_BEARER}{{4,}}+"
    rf"|(?!(?>[A-Za-z]{{1,40}})(?!{_BEARER})){_BEARER}{{8,}}+(?![(\[])"
)
_USER = _but("/:@\"'<>`") + "{0,128}:"
_URL_PASSWORD = _PLACEHOLDER + _but("/\"'<>`") + "{1,256}(?=@)"
_FIELD_PASSWORD = (
    r"(?!\[redacted\]|(?:None|null|true|false)\b)" + _but(";&\"'`,()[]{}<>$") + r"""{3,72}+(?=[\s;&"'`]|\\["'rn]|\Z)"""
)
_API_KEY = rf"(?=[A-Za-z_-]{{0,40}}[0-9]){_TOKEN}{{20,}}+(?![(.\[])"
_JWT = rf"{_TOKEN}{{8,}}+\.{_TOKEN}{{4,}}+(?:\.{_TOKEN}*+){{1,3}}+"

_VENDORS = (
    _prefixed("anthropic-key", "sk-ant-", _TOKEN, 8),
    _prefixed("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", _TOKEN, 8),
    _prefixed("openrouter-key", "sk-or-", _TOKEN, 8),
    _prefixed("huggingface-token", "hf_ api_org_", _ALNUM, 20, "token"),
    _prefixed("groq-key", "gsk_", _ALNUM, 20, "token"),
    _prefixed("xai-key", "xai-", _ALNUM, 20, "token"),
    _prefixed("replicate-token", "r8_", _ALNUM, 20, "token"),
    _prefixed("perplexity-key", "pplx-", _ALNUM, 20, "token"),
    _prefixed("nvidia-key", "nvapi-", _TOKEN, 20, "token"),
    _prefixed("fireworks-key", "fw_", _ALNUM, 20, "token"),
    _prefixed("together-key", "tgp_v1_", _TOKEN, 20, "token"),
    _prefixed("cerebras-key", "csk-", _ALNUM, 20, "token"),
    _prefixed("jina-key", "jina_", _ALNUM, 20, "token"),
    _prefixed("tavily-key", "tvly-", _TOKEN, 16, "token"),
    _prefixed("langsmith-key", "lsv2_", _WORD, 20, "token"),
)

_CLOUDS = (
    SecretRule("aws-access-key-id", ("AKIA", "ASIA", "ABIA", "ACCA"), "[0-9A-Z]{16}(?![0-9A-Z])", "token"),
    SecretRule(
        "aws-secret-key",
        ("secret_access_key", "SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey", "secret-access-key"),
        rf"{_BASE64}{{40}}(?![A-Za-z0-9+/=])",
        lead=_ASSIGN,
    ),
    SecretRule(
        "aws-session-token",
        ("session_token", "SESSION_TOKEN", "SessionToken", "sessionToken"),
        "[A-Za-z0-9+/=]{64,}+",
        lead=_ASSIGN,
    ),
    _prefixed("google-api-key", "AIza", _TOKEN, 33, "token"),
    _prefixed("google-oauth-token", "ya29. 1//0", _TOKEN, 20, "token"),
    _prefixed("google-client-secret", "GOCSPX-", _TOKEN, 20),
    SecretRule(
        "azure-account-key",
        ("AccountKey=", "SharedAccessKey=", "accountkey=", "sharedaccesskey="),
        rf"{_BASE64}{{20,}}+={{0,2}}",
        lead="",
    ),
    SecretRule("azure-signature", ("sig=",), "[A-Za-z0-9+/%]{30,}+={0,2}", lead=r"(?<=[?&;6]sig=)"),
    SecretRule("azure-client-secret", ("Q~",), r"(?<=[A-Za-z0-9_~.-]{3}[0-9]Q~)[A-Za-z0-9_~.-]{31,34}"),
    _prefixed("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", _ALNUM, 32),
    _prefixed("databricks-token", "dapi", "[a-f0-9]", 32, "token"),
    _prefixed("vault-token", "hvs. hvb. hvr.", _TOKEN, 24, "token"),
    SecretRule("terraform-token", (".atlasv1.",), rf"{_TOKEN}{{32,}}+"),
)

_FORGES = (
    _prefixed("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _WORD, 30),
    _prefixed("github-token", "github_pat_", _WORD, 22),
    _prefixed(
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- glsoat- glft- glimt- glagent- glffct- gloas-",
        "[A-Za-z0-9_.-]",
        20,
    ),
    _prefixed("npm-token", "npm_", _ALNUM, 30, "token"),
    SecretRule("pypi-token", ("pypi-",), rf"(?:AgE{_TOKEN}{{13,}}+|{_TOKEN}{{32,}}+)", "token"),
    _prefixed("rubygems-key", "rubygems_", "[a-f0-9]", 40),
    _prefixed("docker-token", "dckr_pat_ dckr_oat_", _TOKEN, 20),
    _prefixed("atlassian-token", "ATATT3 ATCTT3 ATBB", "[A-Za-z0-9_=-]", 24, "token"),
)

_SERVICES = (
    _prefixed("slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxe. xoxc- xoxd- xoxo-", "[A-Za-z0-9.%-]", 10),
    _prefixed("slack-token", "xapp- xwfp-", "[A-Za-z0-9-]", 10, "token"),
    SecretRule(
        "slack-webhook", ("hooks.slack.com/",), "[A-Za-z0-9+/_-]{20,}+", lead="(?:services|workflows|triggers)/"
    ),
    _prefixed("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", "[A-Za-z0-9+/=]", 16),
    SecretRule("sendgrid-key", ("SG.",), rf"{_TOKEN}{{16,32}}\.{_TOKEN}{{16,}}+", "token"),
    _prefixed("shopify-token", "shpat_ shpca_ shppa_ shpss_", "[A-Fa-f0-9]", 32),
    _prefixed("service-token", "sbp_ ntn_ lin_api_ e2b_", _ALNUM, 24, "token"),
    _prefixed("service-token", "figd_ PMAK- HRKU- sq0atp- sq0csp- dp.pt. dp.st.", _TOKEN, 20, "token"),
    _prefixed("service-token", "glc_ glsa_ sntrys_ sntryu_ pscale_tkn_ pscale_pw_", "[A-Za-z0-9_.=+/-]", 24, "token"),
    _prefixed("age-key", "AGE-SECRET-KEY-1", "[A-Z0-9]", 40),
)

_ASSIGNED = (
    SecretRule("private-key", ("-----BEGIN ",), _PRIVATE_KEY, endless=True),
    SecretRule("jwt", ("eyJ",), _JWT, "run", endless=True),
    SecretRule("authorization", ("Authorization", "authorization", "AUTHORIZATION"), _AUTHORIZATION, lead=_ASSIGN),
    SecretRule(
        "bearer-token",
        ("Bearer", "bearer", "BEARER"),
        rf"{_PROSE}{_BEARER}{{8,}}+",
        "token",
        r"(?:[ \t]{1,4}|%20|\+)",
    ),
    SecretRule("connection-password", ("://", r":\/\/"), _URL_PASSWORD, lead=_USER),
    SecretRule(
        "connection-password",
        ("Password=", "password=", "PASSWORD=", "Pwd=", "pwd=", "PWD="),
        _FIELD_PASSWORD,
        "token",
        "",
    ),
    SecretRule(
        "api-key",
        ("api-key", "Api-Key", "API-KEY", "Api-key", "api_key", "API_KEY", "apikey", "apiKey", "ApiKey", "APIKEY"),
        _API_KEY,
        lead=_ASSIGN,
    ),
)

_GENERIC = (SecretRule("generic-key", ("sk-", "key-", "token-", "secret-"), rf"{_TOKEN}{{8,}}+", "word"),)

DEFAULT_RULES: tuple[SecretRule, ...] = (*_VENDORS, *_CLOUDS, *_FORGES, *_SERVICES, *_ASSIGNED, *_GENERIC)
"""The rules of a detector that is given none. Where several match at one place, the first one names the secret."""
