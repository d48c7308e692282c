'use strict';

$(document).ready(function () {
    const filters = () => $('#defaults-display select');

    function applyFilters() {
        const rows = $('#defaults-display tbody tr');
        rows.each(function () {
            const row = $(this);
            const fits = filters().get().every(f => !f.value || row.data(f.name) === f.value);
            row.toggle(fits);
        });
        $('#defaults-count').text(`${rows.filter(':visible').length} of ${rows.length} cases`);
    }

    /* What is filtered by stands in the address, so that it can be passed on. */
    filters().on('change', function () {
        const params = {};
        filters().each((i, f) => { if (f.value) { params[f.name] = [f.value]; } });
        window.location.hash = $.asv.format_hash_string({ location: ['defaults'], params });
    });

    $.asv.register_page('defaults', function (params) {
        $('#title').text('');  // the tab says it
        $('#defaults-display').show();
        filters().each((i, f) => { f.value = (params[f.name] || [''])[0]; });
        applyFilters();
    });

    $(window).on('hashchange', function () {
        const page = $.asv.parse_hash_string(window.location.hash).location[0];
        $('#defaults-display').toggle(page === 'defaults');
    });

    /* asv would first show all against the commit, on a linear axis. The address is replaced by that
       of a view by size or condition number, on a logarithmic one. */
    function firstView(name) {
        const benchmark = $.asv.main_json.benchmarks[name];
        const names = benchmark ? benchmark.param_names : [];
        const across = ['log10_cond', 'shape'].find(axis => names.includes(axis));
        if (!across) {
            return null;
        }
        const strategies = benchmark.params[names.indexOf('strategy')];
        return $.asv.format_hash_string({
            location: [name],
            params: { 'x-axis': [across], 'y-axis-scale': ['log'], 'p-strategy': strategies },
        });
    }

    const register = $.asv.register_page;
    $.asv.register_page = function (name, show) {
        register(name, name !== 'graphdisplay' ? show : function (params) {
            const view = Object.keys(params).length === 1 && firstView(params.benchmark);
            if (view) {
                window.location.replace(view);
            } else {
                show(params);
            }
        });
    };

    if (!window.location.hash) {
        window.location.replace('#defaults');
    }
});
