"""A prediction can be made, changed and closed; without a kernel it is a list of options."""

import pytest

from ampkit.predict import MISSED, predict


def test_a_click_is_kept_and_said():
    asked = predict("zero", "1e-8", question="What is 1e-8 in FP16?")
    asked._buttons[0].click()
    assert asked.chosen == "zero"
    assert "You said: zero. Now run the next cell" in asked._says.value
    assert [button.icon for button in asked._buttons] == ["check", ""]


def test_a_choice_can_be_changed_until_the_next_cell_runs():
    asked = predict("zero", "1e-8")
    asked.choose("zero")
    asked.choose("1e-8")
    asked._next_cell_runs()
    asked.choose("zero")
    assert asked.chosen == "1e-8"
    assert all(button.disabled for button in asked._buttons)


def test_running_on_without_a_prediction_leaves_it_open_and_says_so():
    asked = predict("zero", "1e-8")
    asked._next_cell_runs()
    assert MISSED.split(".")[0] in asked._says.value
    asked.choose("zero")
    assert asked.chosen == "zero"
    assert "The cell below has the answer" in asked._says.value


def test_without_a_kernel_the_page_lists_the_options_escaped():
    bundle = predict("scale < 1", "x", question="Is <b> bold?")._repr_mimebundle_()
    assert "<li>scale &lt; 1</li>" in bundle["text/html"]
    assert "Is &lt;b&gt; bold?" in bundle["text/html"]
    assert "A. scale < 1" in bundle["text/plain"]


@pytest.mark.parametrize("options", [(), ("only",), ("same", "same")])
def test_a_question_with_no_real_choice_is_refused(options):
    with pytest.raises(ValueError, match="at least two different options"):
        predict(*options)


def test_an_option_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no option 'z'"):
        predict("a", "b").choose("z")


def test_the_next_cell_closes_a_prediction_in_ipython():
    testing = pytest.importorskip("IPython.core.interactiveshell", reason="requires IPython")
    shell = testing.InteractiveShell.instance()
    try:
        shell.run_cell("from ampkit.predict import predict\nasked = predict('a', 'b'); asked.choose('a')")
        assert not shell.user_ns["asked"].closed
        shell.run_cell("1 + 1")
        assert shell.user_ns["asked"].closed
    finally:
        testing.InteractiveShell.clear_instance()
