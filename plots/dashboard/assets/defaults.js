'use strict';

$(document).ready(function () {
    const filters = () => $('#defaults-display select');
    const headings = $('#defaults-display thead th');
    const names = headings.get().map(heading => heading.textContent);
    const written = $('#defaults-display tbody tr').get();
    /* Of "error" ascending, of "-error" descending; of none, the order in which lines were written. */
    let order = '';

    /* Narrow screens show each entry with its heading before it. */
    written.forEach(row => names.forEach((name, i) => { row.cells[i].dataset.name = name; }));

    function applyOrder() {
        const name = order.replace(/^-/, '');
        const column = names.indexOf(name);
        const sign = order === name ? 1 : -1;
        const compare = (one, other) => {
            const [a, b] = [one, other].map(row => row.cells[column]);
            const [x, y] = [a, b].map(cell => parseFloat(cell.dataset.value));
            if ('value' in a.dataset) {  // last, both ways: what is missing
                return isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) : sign * (x - y);
            }
            return sign * a.textContent.localeCompare(b.textContent, 'en', { numeric: true });
        };
        const rows = column < 0 ? written : [...written].sort(compare);
        $('#defaults-display tbody').append(rows);
        headings.removeAttr('aria-sort').eq(column).attr(
            column < 0 ? {} : { 'aria-sort': sign > 0 ? 'ascending' : 'descending' });
    }

    function applyFilters() {
        const rows = $('#defaults-display tbody tr');
        rows.each(function () {
            const row = $(this);
            const fits = filters().get().every(f => !f.value || row.data(f.name) === f.value);
            row.toggle(fits);
        });
        $('#defaults-count').text(`${rows.filter(':visible').length} of ${rows.length} cases`);
    }

    /* What is filtered and sorted by stands in the address, so that it can be passed on. */
    function keep(sort) {
        const params = sort ? { sort: [sort] } : {};
        filters().each((i, f) => { if (f.value) { params[f.name] = [f.value]; } });
        window.location.hash = $.asv.format_hash_string({ location: ['defaults'], params });
    }

    filters().on('change', () => keep(order));
    headings.on('click', function () {
        const name = names[$(this).index()];
        keep({ [name]: `-${name}`, [`-${name}`]: '' }[order] ?? name);
    });

    $.asv.register_page('defaults', function (params) {
        $('#title').text('');  // the tab says it
        $('#defaults-display').show();
        filters().each((i, f) => { f.value = (params[f.name] || [''])[0]; });
        applyFilters();
        order = (params.sort || [''])[0];
        applyOrder();
    });

    $(window).on('hashchange', function () {
        const page = $.asv.parse_hash_string(window.location.hash).location[0];
        $('#defaults-display').toggle(page === 'defaults');
    });

    /* asv has seven colours for all curves. A strategy has that of the figures. */
    const colours = $('#defaults-display').data('colours');
    $.plot.plugins.push({
        name: 'colours',
        init(plot) {
            plot.hooks.processDatapoints.push((_, series) => {
                const [, name] = /strategy-([^;]+)/.exec(series.label) ?? [];
                series.color = colours[name] ?? series.color;
            });
        },
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
