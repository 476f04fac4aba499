"""Deleting versions and subjects: softly first, so that records can still be read, then for good."""

from headrace.registry.errors import (
    reference_exists,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from headrace.registry.scope import check_writable
from headrace.registry.tables import Tables
from headrace.registry.version import LATEST


def delete_version(tables: Tables, subject: str, version: int, *, permanent: bool) -> int:
    """Delete one version, and return its number; nothing that is referred to."""
    there = tables.latest(subject) if version == LATEST else tables.version(subject, version)
    if there is None:
        raise (version_not_found(version) if tables.has_subject(subject, deleted=True) else subject_not_found(subject))
    if there.is_deleted and not permanent:
        raise version_soft_deleted(subject, version)
    check_writable(tables, subject)
    if tables.referrers(subject, there.version, deleted=permanent):
        raise reference_exists(subject, there.version)
    if permanent and not there.is_deleted:
        raise version_not_soft_deleted(subject, there.version)
    if not permanent:
        tables.delete_versions(subject, [there.version])
    else:
        tables.remove_versions(subject, [there.version])
        if not tables.history(subject):
            forget_settings(tables, subject)
    return there.version


def delete_subject(tables: Tables, subject: str, *, permanent: bool) -> list[int]:
    """Delete every version, and return their numbers; nothing that other subjects refer to."""
    if not tables.has_subject(subject, deleted=True):
        raise subject_not_found(subject)
    if not permanent and not tables.has_subject(subject, deleted=False):
        raise subject_soft_deleted(subject)
    check_writable(tables, subject)
    versions = [each for each in tables.history(subject) if permanent or not each.is_deleted]
    for each in versions:
        if tables.referring_subjects(subject, each.version, deleted=permanent) - {subject}:
            raise reference_exists(subject, each.version)
        if permanent and not each.is_deleted:
            raise subject_not_soft_deleted(subject)
    numbers = [each.version for each in versions]
    if permanent:
        tables.remove_versions(subject, numbers)
        forget_settings(tables, subject)
    else:
        tables.delete_versions(subject, numbers)
    return list(numbers)


def forget_settings(tables: Tables, subject: str) -> None:
    tables.settings.delete_mode(subject)
    tables.settings.delete_config(subject)
