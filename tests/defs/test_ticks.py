"""What a tick of the sensor decides where a table cannot be looked at."""

from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.defs.sensors import _Tick
from backfill_assets.errors import EnvironmentSetupError, PositionsLostError

orders = kafka_source("orders", topic="orders", schema="id LONG")
sound = materialized_view("sound", query="SELECT id FROM orders", upstreams=[orders])
broken = materialized_view("broken", query="SELECT id FROM orders WHERE id > 1", upstreams=[orders])
TOKEN = "token-of-a-session"


def looked(table: Any) -> SimpleNamespace:
    """A table of a project in which one view's log is lost, and another store cannot be read."""

    def look() -> Any:
        if table.name == "broken":
            raise PositionsLostError("its positions are gone", hint="none")
        record = SimpleNamespace(live=True, target=table.target, incarnation="i", epoch=4)
        return SimpleNamespace(record=record, exists=True, version=9)

    decider = SimpleNamespace(waits=lambda _position, **_: True)
    parts = SimpleNamespace(decider=decider, position=lambda _record: None)
    return SimpleNamespace(output=SimpleNamespace(look=look), parts=parts)


def tick(instance: dg.DagsterInstance, **given: Any) -> _Tick:
    controls = SimpleNamespace(all_controls=dict, leases=dict)
    workspace: Any = SimpleNamespace(
        declared={each.name: each for each in (orders, sound, broken)},
        prepare_to_read=lambda: None,
        table=looked,
        state=controls,
    )
    for name, value in given.items():
        setattr(workspace, name, value)
    return _Tick(workspace=workspace, instance=instance)


def test_a_view_that_cannot_be_looked_at_does_not_prevent_the_refresh_of_its_source() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        found = tick(instance).decide(orders, ())
        assert isinstance(found, dg.RunRequest)
        assert found.asset_selection == [orders.key, sound.key]
        assert tick(instance).decide(broken, ()) == "[POSITIONS_LOST] its positions are gone"


def test_a_paused_view_is_not_refreshed_with_its_source() -> None:
    paused = SimpleNamespace(all_controls=lambda: {sound.target: Controls(paused=True)}, leases=dict)
    with dg.DagsterInstance.ephemeral() as instance:
        found = tick(instance, state=paused).decide(orders, ())
        assert isinstance(found, dg.RunRequest)
        assert found.asset_selection == [orders.key]
        assert tick(instance, state=paused).decide(sound, ()) == "paused"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(f"400 Bad Request: {TOKEN}"), "OSError: 400 Bad Request: …"),
        (EnvironmentSetupError("no broker", hint="start one"), "[ENVIRONMENT] no broker"),
    ],
)
def test_an_error_of_one_table_is_a_reason_without_secrets(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)

    def fail(_table: Any) -> None:
        raise error

    with dg.DagsterInstance.ephemeral() as instance:
        assert tick(instance, table=fail).decide(orders, ()) == said
