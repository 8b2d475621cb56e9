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
  const go = (kind, number, behavior) => {
    chosen = [kind, number];
    show(kind, number);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    ends(kind, number).forEach((element, side) => {
      const room = (panes[side].clientHeight - element.offsetHeight) / 2;
      panes[side].scrollTo({ top: element.offsetTop - Math.max(room, 8),
        behavior: behavior || (calm ? "auto" : "smooth") });
    });
  };

  const make = (attributes) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    Object.entries(attributes).forEach(([key, value]) => path.setAttribute(key, value));
    return map.appendChild(path);
  };
  const clamp = (y, { top, bottom }) => Math.min(Math.max(y, top), bottom);
  // Where a link meets an element: the part of the element that its pane shows.
  const place = (element, side, stacked, box) => {
    const pane = panes[side].getBoundingClientRect(), own = element.getBoundingClientRect();
    const [top, bottom] = [own.top, own.bottom].map((y) => clamp(y, pane) - box.top);
    const x = (side && !stacked ? own.left : own.right) - box.left;
    return { top, bottom, x, seen: bottom - top > 1 };
  };
  const shape = (kind, a, b, stacked) => {
    const far = stacked ? map.clientWidth : (a.x + b.x) / 2;  // where curves turn
    if (kind === "sections")
      return `M${a.x},${a.top}C${far},${a.top} ${far},${b.top} ${b.x},${b.top}` +
        `V${b.bottom}C${far},${b.bottom} ${far},${a.bottom} ${a.x},${a.bottom}Z`;
    const [y, z] = [a, b].map(({ top, bottom }) => (top + bottom) / 2);
    return `M${a.x},${y}C${far},${y} ${far},${z} ${b.x},${z}`;
  };
  const follow = () => {  // the links end at the passages, wherever these are now
    const [a, b] = panes.map((pane) => pane.getBoundingClientRect());
    const stacked = b.left < a.right, box = map.getBoundingClientRect();
    all(".map path").forEach((path) => {
      const { kind, link } = path.dataset;
      const [from, to] = ends(kind, link).map((e, side) => place(e, side, stacked, box));
      path.setAttribute("d", shape(kind, from, to, stacked));
      path.classList.toggle("away", from.seen !== to.seen);
      path.classList.toggle("hidden", !from.seen && !to.seen);
    });
  };
  const drawn = (slider) => {
    const kind = slider.dataset.kind, count = +slider.value;
    slider.nextElementSibling.textContent = count;
    const high = links[kind][0][2], low = links[kind][Math.max(count, 1) - 1][2];
    for (let number = count - 1; number >= 0; number--) {  // the strongest on top
      const share = high > low ? (links[kind][number][2] - low) / (high - low) : 1;
      const opacity = (0.25 + 0.75 * share).toFixed(3);
      const path = make({ "data-kind": kind, "data-link": number, opacity });
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
  const draw = () => {
    map.replaceChildren();
    all(".linked").forEach((passage) => {
      passage.classList.remove("linked");
      passage.onpointerenter = passage.onpointerleave = passage.onclick = null;
    });
    sliders.forEach(drawn);
    follow();
    if (chosen) show(...chosen);
  };
  sliders.forEach((slider) => (slider.oninput = draw));
  panes.forEach((pane) => (pane.onscroll = follow));
  all(".links button").forEach((button) => (button.onclick = () => {
    go(button.dataset.kind, +button.dataset.link);
    document.querySelector(".compare").scrollIntoView({ block: "center" });
  }));
  draw();
  new ResizeObserver(follow).observe(map);
  if (links.segments.length) go("segments", 0, "instant");
})();
