"""Personal data by the look of it: in doubt a field is personal, for a note too many is easily removed."""

import re
from collections.abc import Iterable, Mapping

# By the words of a field's name, the first that fits. What is guessed too often costs a glance; too rarely, a leak.
NAMES: Mapping[str, str] = {
    r"\w*mail": "email",
    r"\w*phone|mobile|cell|fax|msisdn": "phone",
    r"birth\w*|dob|born": "birth_date",
    r"\w*(?<!user)(?<!host)(?<!file)name|surname|salutation": "name",
    r"username|login|nick\w*|handle": "user_name",
    r"street|address\w*|addr|postal\w*|postcode|zip\w*": "address",
    r"latitude|longitude|lat|lng|lon|geo\w*|location": "location",
    r"ip|ipv[46]|mac": "network_address",
    r"iban|bic|card|pan|cvv|cvc": "payment",
    r"ssn|passport|licen[cs]e|national|tax|vat|insurance": "official_number",
    r"gender|sex|age|religion|ethnicity|nationality|health|diagnosis": "trait",
    r"password|passwd|secret|token|credential\w*": "secret",
    r"device|imei|imsi|advertising|cookie|fingerprint": "device",
}
VALUES: Mapping[str, str] = {
    r"[^@\s]+@[^@\s]+\.[^@\s]+": "email",
    r"\+[0-9][0-9 ()/.-]{6,18}[0-9]": "phone",
    r"[0-9]{1,3}(\.[0-9]{1,3}){3}": "network_address",
    r"[A-Z]{2}[0-9]{2} ?[A-Z0-9]{4} ?([A-Z0-9]{4} ?){2,6}[A-Z0-9]{0,4}": "payment",
}
COMPOUND = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def kind(name: str, texts: Iterable[str] = ()) -> str | None:
    """The kind of personal data that a field seems to hold, told by its name or by any of its values."""
    words = [word for word in COMPOUND.sub("_", name).lower().split("_") if word]
    by_name = (kind for pattern, kind in NAMES.items() for word in words if re.fullmatch(pattern, word))
    by_value = (kind for text in texts for pattern, kind in VALUES.items() if re.fullmatch(pattern, text))
    return next(by_name, None) or next(by_value, None)
