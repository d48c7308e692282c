'use strict';

/* What asv's pages use of three libraries that no Python package holds. */

/* md5: asv wants a key for a text, in the browser's storage only. */
window.md5 = text => text;

/* stupidtable: a click on a heading with data-sort sorts by that column. */
(function ($) {
    const order = {
        'int': (a, b) => parseInt(a, 10) - parseInt(b, 10),
        'float': (a, b) => parseFloat(a) - parseFloat(b),
        'string': (a, b) => a.localeCompare(b),
    };

    function valueIn(row, column) {
        const cell = $(row).children().eq(column);
        const value = cell.data('sort-value');
        return String(value === undefined ? cell.text() : value);
    }

    $.fn.stupidtable = function (comparisons) {
        const compare = { ...order, ...comparisons };
        return this.each(function () {
            const table = $(this);
            table.on('click.stupidtable', 'thead th', function () {
                const kind = $(this).data('sort');
                if (kind) {
                    sort(table, $(this), compare[kind]);
                }
            });
        });
    };

    $.fn.stupidsort = function (direction) {
        return this.each(function () {
            $(this).data('sort-dir', direction === 'asc' ? 'desc' : 'asc').trigger('click');
        });
    };

    function sort(table, heading, compare) {
        const column = heading.index();
        const direction = heading.data('sort-dir') === 'asc' ? 'desc' : 'asc';
        const sign = direction === 'asc' ? 1 : -1;
        heading.siblings().removeData('sort-dir');
        heading.data('sort-dir', direction);
        const body = table.children('tbody');
        const rows = body.children('tr').get();
        rows.sort((a, b) => sign * compare(valueIn(a, column), valueIn(b, column)));
        body.append(rows);
        table.trigger('aftertablesort', { column, direction });
    }
})(jQuery);

/* flot-orderbars: the bars of several series stand side by side. And where the axis is logarithmic
   they start at its lower end: from zero, as flot would have it, nothing could be drawn. A line with
   one point, of one commit, is drawn as the point. */
jQuery.plot.plugins.push({
    name: 'bars',
    init(plot) {
        plot.hooks.processDatapoints.push((plot, series, { points, pointsize }) => {
            if (!series.bars.show) {
                if (points.length === pointsize) {
                    series.points.show = true;
                    series.yaxis.options.autoscaleMargin = 0.5;
                }
                return;
            }
            const all = plot.getData();
            const place = all.indexOf(series) - (all.length - 1) / 2;
            const bottom = series.yaxis.options.transform ? series.yaxis.options.min : 0;
            for (let i = 0; i < points.length; i += pointsize) {
                if (points[i] !== null) {
                    points[i] += place * series.bars.barWidth;
                    points[i + 2] = bottom;
                }
            }
        });
    },
});
