(() => {
  const all = (query) => [...document.querySelectorAll(query)];
  const data = document.getElementById("links");
  if (!data) return;
  const links = JSON.parse(data.textContent);  // kind -> [[row, column, cosine]]
  const panes = all(".pane"), sliders = all("[type=range]");
  const map = document.querySelector(".map"), shown = document.getElementById("shown");
  const ends = (kind, number) => panes.map((pane, side) =>
    pane.querySelector(`[data-${kind}="${links[kind][number][side]}"]`));
  const words = (element) =>
    (element.querySelector("h4") || element).textContent.slice(0, 60);

  let chosen = null;  // kind and number of the link that the user clicked
  const clear = () => all(".on").forEach((element) => element.classList.remove("on"));
  const show = (kind, number) => {
    clear();
    const both = ends(kind, number);
    const path = map.querySelector(`[data-kind=${kind}][data-link="${number}"]`);
    [...both, path].forEach((element) => element && element.classList.add("on"));
    shown.textContent =
      `${links[kind][number][2].toFixed(3)} · ${both.map(words).join("… ↔ ")}…`;
  };
  const go = (kind, number) => {
    chosen = [kind, number];
    show(kind, number);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    ends(kind, number).forEach((element, side) => {
      const room = (panes[side].clientHeight - element.offsetHeight) / 2;
      panes[side].scrollTo({ top: element.offsetTop - Math.max(room, 8),
        behavior: calm ? "auto" : "smooth" });
    });
  };

  const scale = (side) => map.clientHeight / panes[side].scrollHeight;
  const make = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    return map.appendChild(element);
  };
  const shape = (kind, number) => {
    const w = map.clientWidth, m = w / 2;
    const [[a, b], [c, d]] = ends(kind, number).map((element, side) =>
      [0, element.offsetHeight].map((y) => (element.offsetTop + y) * scale(side)));
    if (kind === "sections")
      return `M0,${a}C${m},${a} ${m},${c} ${w},${c}V${d}C${m},${d} ${m},${b} 0,${b}Z`;
    const y = (a + b) / 2, z = (c + d) / 2;
    return `M0,${y}C${m},${y} ${m},${z} ${w},${z}`;
  };
  const drawn = (slider) => {
    const kind = slider.dataset.kind, count = +slider.value;
    slider.nextElementSibling.textContent = count;
    const high = links[kind][0][2], low = links[kind][Math.max(count, 1) - 1][2];
    for (let number = count - 1; number >= 0; number--) {  // the strongest on top
      const share = high > low ? (links[kind][number][2] - low) / (high - low) : 1;
      const opacity = (0.25 + 0.75 * share).toFixed(3);
      const path = make("path", { d: shape(kind, number), "data-kind": kind,
        "data-link": number, opacity });
      const passages = kind === "segments" ? ends(kind, number) : [];
      passages.forEach((passage) => {
        passage.classList.add("linked");
        passage.style.setProperty("--share", opacity);
      });
      [path, ...passages].forEach((element) => {
        element.onpointerenter = () => show(kind, number);
        element.onpointerleave = () => (chosen ? show(...chosen) : clear());
        element.onclick = () => getSelection().isCollapsed && go(kind, number);
      });
    }
  };
  const follow = () => map.querySelectorAll("rect").forEach((rect, side) => {
    rect.setAttribute("y", panes[side].scrollTop * scale(side));
    rect.setAttribute("height", panes[side].clientHeight * scale(side));
  });
  const draw = () => {
    map.replaceChildren();
    all(".linked").forEach((passage) => {
      passage.classList.remove("linked");
      passage.onpointerenter = passage.onpointerleave = passage.onclick = null;
    });
    sliders.forEach(drawn);
    panes.forEach((_, side) => make("rect", { x: side ? map.clientWidth - 4 : 0,
      width: 4 }));  // the visible part of each text
    follow();
    if (chosen) show(...chosen);
  };
  sliders.forEach((slider) => (slider.oninput = draw));
  panes.forEach((pane) => (pane.onscroll = follow));
  all(".links button").forEach((button) => (button.onclick = () => {
    go(button.dataset.kind, +button.dataset.link);
    document.querySelector(".compare").scrollIntoView({ block: "center" });
  }));
  new ResizeObserver(draw).observe(map);
})();
