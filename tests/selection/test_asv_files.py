import json
import math

import pytest

from strategies.selection import asv_files
from strategies.selection.asv_files import load_descriptions, parse_shape, read_asv_file
from strategies.selection.files import UnusableFileError


def edit(path, change):
    """Changes a result file through a function of its content."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def column(content, benchmark, name):
    return content["results"][benchmark][content["result_columns"].index(name)]


def find(records, **wanted):
    return [r for r in records if all(r[key] == value for key, value in wanted.items())]


def test_the_benchmarks_of_a_module_become_one_record_a_case(result_file):
    (record,) = find(
        read_asv_file(result_file), operation="pinv", m=64, batch=0, strategy="qr_pinv"
    )
    assert record["status"] == "ok"
    assert record["backward_seconds"] > 0
    assert record["forward_backward_seconds"] > record["backward_seconds_low"]
    assert 0 < record["error"] < 1e-13
    assert record["peak_bytes"] > 0


def test_the_lu_suite_is_lu_factor(result_file):
    assert {r["operation"] for r in read_asv_file(result_file)} == {"lu_factor", "pinv"}


def test_what_was_skipped_is_not_available(result_file):
    deficient = find(read_asv_file(result_file), rank=2, strategy="triangular_solve")
    assert [record["status"] for record in deficient] == ["n/a"]


def test_conditioning_is_a_case_of_its_own(result_file):
    records = find(read_asv_file(result_file), operation="pinv", strategy="native")
    measured = {r["log10_cond"] for r in records if not r["matrix"]}
    assert {k for k in measured if not math.isnan(k)} == {1.0, 5.0}


@pytest.mark.parametrize(("duration", "status"), [(1.0, "failed"), (700.0, "timeout")])
def test_a_lost_value_is_a_failure_unless_it_took_its_time(
    asv_folder, result_file, duration, status
):
    def lose_two(content):
        column(content, "lu.Single.time_backward", "result")[:2] = [None, None]
        at = content["result_columns"].index("duration")
        content["results"]["lu.Single.time_backward"][at] = duration

    edit(result_file, lose_two)
    records = read_asv_file(result_file, load_descriptions(asv_folder))
    lost = find(records, operation="lu_factor", strategy="native", batch=0)
    assert [r["status"] for r in lost if math.isnan(r["log10_cond"])] == [status, status]


def test_results_of_an_outdated_benchmark_are_left_out(asv_folder, result_file):
    descriptions = load_descriptions(asv_folder)
    descriptions["pinv.Single.time_backward"]["version"] = "2"
    (record,) = find(
        read_asv_file(result_file, descriptions), m=64, batch=0, operation="pinv", strategy="native"
    )
    assert "backward_seconds" not in record
    assert record["peak_bytes"] > 0


def test_the_interval_holds_the_median_and_is_positive(result_file):
    for record in read_asv_file(result_file):
        if "speedup_over_native" in record:
            low, high = record["speedup_over_native_low"], record["speedup_over_native_high"]
            assert 0 < low <= record["speedup_over_native"] <= high


def test_provenance_has_no_path(result_file):
    record = read_asv_file(result_file)[0]
    assert record["machine"] == "reference-machine"
    assert record["torch"] == "2.13.0"
    assert len(record["commit"]) == 40
    assert "python" not in record


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"version": 2}', '{"version": 2, "re'])
def test_what_is_no_result_file_is_refused(result_file, text):
    result_file.write_text(text)
    with pytest.raises(UnusableFileError, match=result_file.name):
        read_asv_file(result_file)
    assert result_file.read_text() == text


def test_a_truncated_file_is_refused(result_file):
    result_file.write_text(result_file.read_text()[:-200])
    with pytest.raises(UnusableFileError, match="not a usable asv result file"):
        read_asv_file(result_file)


def test_a_newer_file_is_refused(result_file):
    edit(result_file, lambda content: content.update(version=3))
    with pytest.raises(UnusableFileError, match="newer"):
        read_asv_file(result_file)


def test_values_that_do_not_fit_the_parameters_are_refused(result_file):
    edit(result_file, lambda content: column(content, "lu.Single.time_backward", "params").pop())
    with pytest.raises(UnusableFileError, match=r"lu\.Single\.time_backward"):
        read_asv_file(result_file)


def test_a_file_of_another_machine_is_refused(result_file):
    edit(result_file, lambda content: content["params"].update(machine="elsewhere"))
    with pytest.raises(UnusableFileError, match="machine name"):
        read_asv_file(result_file)


def test_a_damaged_list_of_benchmarks_is_refused(asv_folder):
    (asv_folder / "benchmarks.json").write_text("{")
    with pytest.raises(UnusableFileError, match=r"benchmarks\.json"):
        load_descriptions(asv_folder)


@pytest.mark.parametrize("shape", ["", "4", "4x", "4x4x4", "4x4 k=", "4x4 rank=1 k=2", "a x b"])
def test_what_is_no_shape_is_refused(shape):
    with pytest.raises(ValueError, match="is not a shape"):
        parse_shape(shape)


def test_a_named_matrix_brings_its_condition_number():
    case = asv_files._case(
        "lu.Gallery.track_gradient_error",
        ("native", "12x12 matrix=random_condition_2", 0, "float64", "cpu"),
    )
    assert case["matrix"] == "random_condition_2"
    assert case["log10_cond"] == pytest.approx(math.log10(2))
    assert (case["m"], case["n"], case["rank"]) == (12, 12, None)
