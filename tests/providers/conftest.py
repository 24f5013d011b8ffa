"""Fixtures of the tests that speak to a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.providers.vendors import VENDORS, VendorCase
from tests.providers.wire_server import WireServer


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as running:
        yield running


@pytest.fixture(params=VENDORS, ids=lambda vendor: vendor.name)
def vendor(request: pytest.FixtureRequest) -> VendorCase:
    found: VendorCase = request.param
    return found


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)
