(() => {
  const all = (query, where = document) => [...where.querySelectorAll(query)];
  document.documentElement.classList.add("js");
  addEventListener("beforeprint", () => all("details").forEach((d) => (d.open = true)));
  all(".words").forEach((w) => (w.onclick = () => w.classList.toggle("open")));
  all(".explained").forEach((explained) => {
    const graphs = JSON.parse(  // [graph][receiver][sender]
      explained.querySelector("script").textContent);
    const light = (node, on) => all(`[data-node="${node}"]`, explained).forEach(
      (e) => e.classList.toggle("on", on));
    const pick = (receiver) => {
      explained.querySelector(".receiver").textContent =
        receiver ? `node ${receiver}` : "the document node";
      graphs.forEach((weights, g) => {
        const row = weights[receiver], highest = Math.max(...row);
        row.forEach((weight, node) => all(`.g${g} [data-node="${node}"], ` +
            `tr[data-node="${node}"] .g${g} .bar`, explained).forEach((e) => {
          e.style.setProperty("--share", highest ? weight / highest : 0);
          const shown = weight ? weight.toFixed(4) : "no edge";
          if (e.matches(".bar")) e.textContent = shown;
          else e.title = `node ${node}: ${shown}`;
        }));
      });
      all("tr.picked", explained).forEach((row) => row.classList.remove("picked"));
      explained.querySelector(`tr[data-node="${receiver}"]`).classList.add("picked");
    };
    all("[data-node]", explained).forEach((element) => {
      const node = +element.dataset.node;
      element.onmouseenter = () => light(node, true);
      element.onmouseleave = () => light(node, false);
      if (element.matches(".strip i")) element.onclick = () => {
        all(".on").forEach((e) => e.classList.remove("on"));
        light(node, true);
        explained.querySelector(`tr[data-node="${node}"]`).scrollIntoView(
          { behavior: "smooth", block: "center" });
      };
    });
    all("tr button", explained).forEach(
      (b) => (b.onclick = () => pick(+b.closest("tr").dataset.node)));
  });
})();
