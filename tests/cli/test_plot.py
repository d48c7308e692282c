def test_figures_need_a_checkout(invoke, fails, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fails(invoke("plot"), "from a checkout")
