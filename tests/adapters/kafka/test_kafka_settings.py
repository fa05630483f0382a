"""Kafka client settings: one set of names for both clients, and secrets that are never shown."""

from pathlib import Path

import pytest

from backfill_assets import kafka_source
from backfill_assets.adapters.kafka.client_settings import java_settings
from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.errors import BackfillError, EnvironmentSetupError

SECRET = 'pa"ss\\word-4711'
SASL = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "reader",
    "sasl.password": "env:ORDERS_PASSWORD",
}


def test_the_names_of_librdkafka_become_those_of_the_java_client() -> None:
    found = java_settings({**SASL, "sasl.password": "secret", "ssl.ca.location": "/etc/ca.pem", "client.id": "me"})
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="reader" password="secret";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
        "client.id": "me",
    }


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_scram_logs_in_with_its_own_module_under_either_name(name: str) -> None:
    found = java_settings({name: "SCRAM-SHA-512", "sasl.username": "reader", "sasl.password": "secret"})
    assert found["sasl.mechanism"] == "SCRAM-SHA-512"
    assert "scram.ScramLoginModule" in found["sasl.jaas.config"]
    assert not {"sasl.mechanisms", "sasl.username", "sasl.password"} & found.keys()


def test_quotes_in_a_password_cannot_end_the_login_line() -> None:
    found = java_settings({**SASL, "sasl.password": SECRET})
    assert found["sasl.jaas.config"].endswith('password="pa\\"ss\\\\word-4711";')


def test_a_client_certificate_is_given_to_java_as_text(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_text("CERTIFICATE", encoding="utf-8")
    key.write_text("KEY", encoding="utf-8")
    found = java_settings({"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)})
    assert found == {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CERTIFICATE",
        "ssl.keystore.key": "KEY",
    }


def test_host_names_that_are_not_to_be_checked_are_not_checked_by_java_either() -> None:
    assert java_settings({"ssl.endpoint.identification.algorithm": "none"}) == {
        "ssl.endpoint.identification.algorithm": ""
    }
    assert java_settings({"ssl.endpoint.identification.algorithm": "https"})


def test_a_secret_is_read_from_the_environment_for_both_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_PASSWORD", SECRET)
    client = KafkaConnector(bootstrap_servers="broker:9092", client_config=SASL).client()
    assert client.settings["sasl.password"] == SECRET
    assert "4711" in client.spark_options()["kafka.sasl.jaas.config"]
    assert client.spark_options()["kafka.bootstrap.servers"] == "broker:9092"


def test_a_sources_own_settings_win_over_the_connectors() -> None:
    connector = KafkaConnector(bootstrap_servers="broker:9092", client_config={"client.id": "all", "retries": "1"})
    client = connector.client({"client.id": "mine", "bootstrap.servers": "other:9092"})
    assert (client.servers, client.settings) == ("other:9092", {"client.id": "mine", "retries": "1"})


def test_a_secret_that_is_not_set_is_an_error_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORDERS_PASSWORD", raising=False)
    with pytest.raises(EnvironmentSetupError, match=r"'sasl.password'.*ORDERS_PASSWORD") as caught:
        KafkaConnector(bootstrap_servers="broker:9092", client_config=SASL).client()
    assert "ORDERS_PASSWORD" in caught.value.hint


def test_no_known_broker_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    with pytest.raises(EnvironmentSetupError, match="no Kafka broker is known") as caught:
        KafkaConnector(root=str(tmp_path)).client()
    assert "backfill up" in caught.value.hint


def test_a_secret_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_PASSWORD", SECRET)
    source = kafka_source("orders", topic="t", schema="id LONG", client_config=SASL)
    connector = KafkaConnector(bootstrap_servers="localhost:1", client_config=SASL, connect_seconds=0.2)
    client = connector.client(source.client_config)
    with pytest.raises(BackfillError) as caught:
        client.offer("t", isolation="read_committed")
    shown = [repr(connector), str(connector), repr(client), str(client), repr(source), str(caught.value)]
    shown += [repr(caught.value), repr(caught.value.facts), str(connector.model_dump())]
    assert not [text for text in shown if "4711" in text]


def test_a_password_that_is_written_into_a_declaration_is_not_shown_either() -> None:
    plain = {**SASL, "sasl.password": "pass-4711"}
    source = kafka_source("orders", topic="t", schema="id LONG", client_config=plain)
    connector = KafkaConnector(bootstrap_servers="localhost:1", client_config=plain)
    assert "4711" not in repr(source) + str(source) + repr(connector) + str(connector)


@pytest.mark.parametrize("setting", [{"no.such.setting": "1"}, {"security.protocol": "carrier pigeon"}])
def test_a_setting_that_the_client_does_not_take_is_named(setting: dict[str, str]) -> None:
    client = KafkaConnector(bootstrap_servers="localhost:1", client_config=setting).client()
    with pytest.raises(EnvironmentSetupError, match=next(iter(setting))):
        client.offer("t", isolation="read_committed")


def test_a_spark_task_never_waits_for_more_records_than_there_are_unless_told_to() -> None:
    def longest(**settings: str) -> str:
        client = KafkaConnector(bootstrap_servers="broker:9092", client_config=settings).client()
        return client.spark_options()["kafka.fetch.max.wait.ms"]

    assert longest() == "10"
    assert longest(**{"fetch.wait.max.ms": "250"}) == "250"
