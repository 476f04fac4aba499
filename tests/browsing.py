"""Browsing: Airflow's UI as somebody who has signed in sees it."""

import os

from playwright.sync_api import Browser, Page


def base() -> str:
    return os.environ["AIRFLOW__API__BASE_URL"]


def signed_in(browser: Browser, password: str) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 1500})
    page.goto(f"{base()}/")
    page.locator("input[name=username]").fill("admin")
    page.locator("input[name=password]").fill(password)
    page.locator("button[type=submit]").click()
    page.wait_for_url(lambda url: "login" not in url, timeout=60_000)
    return page


def open_tab(page: Page, name: str) -> None:
    """Click a tab of a DAG; by its whole name, for tasks beside it have names that only begin so."""
    page.get_by_role("link", name=name, exact=True).first.click(timeout=60_000)
