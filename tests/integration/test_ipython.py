import strategies


def test_the_extension_replaces_until_it_is_unloaded():
    strategies.load_ipython_extension(None)
    strategies.load_ipython_extension(None)  # as %reload_ext may
    assert strategies.is_replaced()
    strategies.unload_ipython_extension(None)
    assert not strategies.is_replaced()
