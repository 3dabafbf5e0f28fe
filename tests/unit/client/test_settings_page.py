"""The page of settings says what the code does."""

from tests.unit.client.settings_page import PAGE, page


def test_the_page_is_the_one_that_the_code_writes() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.unit.client.settings_page`"
