# The loss curve of dpinfer pretrain (CSV) as SVG: training loss as a line, held-out loss as dots.
BEGIN {
    FS = ","
    width = 640; height = 320; left = 50; bottom = 40; top = 20; right = 20
}
NR > 1 {
    n++
    step[n] = $1
    loss[n] = $3
    heldout[n] = $4
    if ($3 > max) max = $3
}
function x(s) { return left + (width - left - right) * s / step[n] }
function y(l) { return height - bottom - (height - bottom - top) * l / max }
function text(px, py, anchor, s) {
    printf "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">%s</text>\n", px, py, anchor, s
}
END {
    max = int(max) + 1
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ", width, height
    print "font-family=\"sans-serif\" font-size=\"12\">"
    print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    for (l = 0; l <= max; l++) {
        printf "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", left,
            width - right, y(l), y(l)
        text(left - 8, y(l) + 4, "end", l)
    }
    for (i = 0; i <= 4; i++)
        text(x(step[n] * i / 4), height - bottom + 18, "middle", int(step[n] * i / 4))
    text(width / 2, height - 6, "middle", "step")
    text(left + 10, top + 12, "start", "nats per token: line, training; dots, held out")
    printf "<polyline fill=\"none\" stroke=\"#2060a0\" stroke-width=\"1.5\" points=\""
    for (i = 1; i <= n; i++)
        printf "%.1f,%.1f ", x(step[i]), y(loss[i])
    print "\"/>"
    for (i = 1; i <= n; i++)
        if (heldout[i] != "")
            printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#c04020\"/>\n", x(step[i]),
                y(heldout[i])
    print "</svg>"
}
