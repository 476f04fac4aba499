"""Where a stack lives and on which ports it answers: chosen at the first `up`, kept in its state folder."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stack import stamps
from stack.errors import StackError

REPOSITORY = Path(__file__).resolve().parent.parent
# Not in the chosen state folder: every stack of a checkout shares the same jars.
JARS = REPOSITORY / ".headrace" / "jars"
PORTS = {"airflow": 8080, "kafka": 9092, "kafka_controller": 9093, "s3": 9000, "postgres": 5433, "spark": 15002}
HOST = "127.0.0.1"
_HIGHEST_PORT = 65535


@dataclass(frozen=True)
class Settings:
    """The choices behind one stack."""

    state: Path
    schemas: Path
    warehouses: Path
    ports: dict[str, int]

    @property
    def run(self) -> Path:
        """The folder of what only a running stack needs."""
        return self.state / "run"

    @property
    def logs(self) -> Path:
        """The folder of one log per part."""
        return self.state / "logs"

    def log(self, name: str) -> Path:
        """The log of one part, or of one step such as a migration."""
        return self.logs / f"{name}.log"


def state_folder(environment: Mapping[str, str]) -> Path:
    """The state folder that HEADRACE_STATE names, else the repository's own."""
    return Path(environment.get("HEADRACE_STATE") or REPOSITORY / ".headrace").absolute()


def choose(environment: Mapping[str, str], kept: Mapping[str, object] | None = None) -> Settings:
    """Combine what the environment says now with what was kept from an earlier `up`."""
    kept = kept or {}
    schemas = environment.get("HEADRACE_SCHEMAS") or kept.get("schemas") or REPOSITORY / "schemas"
    warehouses = environment.get("HEADRACE_WAREHOUSES") or kept.get("warehouses") or REPOSITORY / "warehouses"
    return Settings(
        state=state_folder(environment),
        schemas=Path(str(schemas)).absolute(),
        warehouses=Path(str(warehouses)).absolute(),
        ports=choose_ports(environment, kept.get("ports")),
    )


def choose_ports(environment: Mapping[str, str], kept: object = None) -> dict[str, int]:
    """A port named in the environment wins, then an offset, then what was kept, then the defaults."""
    offset = environment.get("HEADRACE_PORT_OFFSET")
    if offset is not None:
        shift = _number("HEADRACE_PORT_OFFSET", offset)
        ports = {name: port + shift for name, port in PORTS.items()}
    else:
        ports = PORTS | (
            {name: int(port) for name, port in kept.items() if name in PORTS} if isinstance(kept, dict) else {}
        )
    for name in PORTS:
        variable = port_variable(name)
        if variable in environment:
            ports[name] = _number(variable, environment[variable])
    return _checked(ports)


def port_variable(name: str) -> str:
    """The environment variable that sets one port."""
    return f"HEADRACE_{name.upper()}_PORT"


def load(environment: Mapping[str, str]) -> Settings:
    """The settings of the stack in the chosen state folder, as this environment would start it."""
    return choose(environment, _kept(state_folder(environment) / "stack.json"))


def keep(settings: Settings) -> None:
    """Keep the choices, so that later commands need no environment variables."""
    kept = {"ports": settings.ports, "schemas": str(settings.schemas), "warehouses": str(settings.warehouses)}
    stamps.write(settings.state / "stack.json", json.dumps(kept, indent=2) + "\n")


def _kept(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    try:
        kept = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise StackError(
            f"{path}: not valid JSON ({error}). Remove the file; ports then start from the defaults."
        ) from error
    if not isinstance(kept, dict):
        raise StackError(f"{path}: expected an object of ports and folders. Remove the file.")
    return kept


def _number(variable: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise StackError(f'{variable}="{text}" is not a number. Set it to a port such as 9092, or unset it.') from error


def _checked(ports: dict[str, int]) -> dict[str, int]:
    taken: dict[int, str] = {}
    for name, port in ports.items():
        if not 0 < port <= _HIGHEST_PORT:
            raise StackError(f"Port {port} of {name} is not between 1 and {_HIGHEST_PORT}. Set {port_variable(name)}.")
        if port in taken:
            raise StackError(
                f"{taken[port]} and {name} were both given port {port}. Set {port_variable(name)} to another."
            )
        taken[port] = name
    return ports
