"""The Amazon provider's connection to Redshift: passwords, IAM and serverless workgroups, as its hook reads them."""

from typing import TYPE_CHECKING, Any

import redshift_connector
from airflow.providers.amazon.aws.hooks.redshift_sql import RedshiftSQLHook
from airflow.sdk.exceptions import AirflowException
from botocore.exceptions import BotoCoreError, ClientError

from headrace import layout
from headrace.errors import ServiceRefused, SettingsError

if TYPE_CHECKING:
    from headrace.warehouses.redshift import Connection, Opener

PORT = 5439


class Impatient(RedshiftSQLHook):
    """The hook, which tries five times and waits as long as it takes, for somebody who only wants to know."""

    def __init__(self, within: int, **ids: str) -> None:
        super().__init__(**ids)
        self.within = within

    def get_conn(self) -> "Connection":  # type: ignore[override]
        asked = {**self._get_conn_params(), **self.conn.extra_dejson, "timeout": self.within}
        opened: Connection = redshift_connector.connect(**asked)
        return opened


def opener(id_: str) -> "Opener":
    """Opens a connection; with `iam` in its extra, by credentials that the lake's S3 connection may ask for."""

    def connect(*, within: int | None = None) -> "Connection":
        ids = {"redshift_conn_id": id_, "aws_conn_id": layout.S3_CONNECTION}
        hook = Impatient(within, **ids) if within else RedshiftSQLHook(**ids)
        try:
            opened: Connection = hook.get_conn()
        except (BotoCoreError, ClientError) as error:
            raise ServiceRefused(
                f"Airflow connection {id_}: AWS gives us no credentials for Redshift: {error} Check its cluster or "
                f"workgroup, and what {layout.S3_CONNECTION} may do; docs/connections.md says what we need."
            ) from error
        except AirflowException as error:
            raise SettingsError(f"Airflow connection {id_}: {error} Mend it under Admin, Connections.") from error
        return opened

    return connect


def place(connection: Any) -> str:
    """Where it is, for messages."""
    where = connection.host or connection.extra_dejson.get("serverless_work_group") or "?"
    return f"{where}:{connection.port or PORT}/{connection.schema}"
