"""The plain starter: a small feed to change, whose notes say what each part is for."""

from headrace.starter.draft import Draft, Guess, Said, declaration, remarks
from headrace.starter.types import Enum, Exact, Member, Simple

MOMENT = "created_at"
OTHERS = (
    Member("status", Enum(("open", "closed")), doc="An enum: any other word goes to quarantine."),
    Member("amount", Exact(12, 2), doc="An amount; in Avro exact: 12 digits, 2 of them after the point."),
    Member("email", Simple("string"), nullable=True, pii="email", doc="Personal: leaves the lake kept or masked only."),
    Member(MOMENT, Simple("timestamp"), doc="In UTC; the same in every revision, so it can be the partition."),
)


def draft(name: str, said: Said) -> Draft:
    """A feed with one field of each common kind, and the key and order that the author may have named."""
    key, order = list(said.key) or ["id"], list(said.order) or ["revision"]
    fields = [
        *(Member(each, Simple("string"), doc="Identifies a row and is never reused; the key.") for each in key),
        *(Member(each, Simple("long"), doc="Counts a row's changes; the highest is its state.") for each in order),
        *(field for field in OTHERS if field.name not in (*key, *order)),
    ]
    partition = {"field": MOMENT, "by": "day", "immutable": True}
    declared = declaration(said, key=key, order=order, partition=None if MOMENT in (*key, *order) else partition)
    guesses = [
        Guess("fields", "examples, one of each common kind: change them to what your records hold"),
        *remarks(said, order=order, personal=[]),
    ]
    return Draft(name, f"{name}: one sentence that says what a record is.", fields, declared, guesses)
