(() => {
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    return { ink: value("--ink"), line: value("--line"), muted: value("--muted"), ground: value("--ground") };
  };
  const themed = (layout) => {
    const { ink, line, muted, ground } = colours();
    const changes = { "font.color": ink, "hoverlabel.bgcolor": ground, "hoverlabel.font.color": ink };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
      changes[`${axis}.gridcolor`] = line;
      changes[`${axis}.linecolor`] = line;
      changes[`${axis}.zerolinecolor`] = line;
      changes[`${axis}.tickfont.color`] = muted;
    }
    return changes;
  };
  const plots = [...document.querySelectorAll("script.plot-data")].map((source) => {
    const place = document.getElementById(source.dataset.plot);
    const { data, layout } = JSON.parse(source.textContent);
    const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
    Plotly.newPlot(place, data, layout, config).then(() => Plotly.relayout(place, themed(layout)));
    return [place, layout];
  });
  const repaint = () => plots.forEach(([place, layout]) => Plotly.relayout(place, themed(layout)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  matchMedia("print").addEventListener("change", repaint);
})();
