(() => {
  "use strict";
  const root = document.documentElement;
  const at = (id) => document.getElementById(id);

  const theme = at("theme");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => { theme.textContent = dark() ? "Light theme" : "Dark theme"; };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();
  theme.hidden = false;

  const find = at("find");
  if (!find) return;
  const words = at("words"), kind = at("kind"), category = at("category"), count = at("count");
  const questions = [...document.querySelectorAll(".q")];
  const lists = [...document.querySelectorAll(".list")];
  let texts = null;

  const shade = (shown, word) => {
    if (!self.Highlight || !CSS.highlights) return;
    const ranges = [];
    for (const question of word ? shown.slice(0, 200) : []) {
      const walk = document.createTreeWalker(question, NodeFilter.SHOW_TEXT);
      while (walk.nextNode() && ranges.length < 1000) {
        const text = walk.currentNode.data.toLowerCase();
        if (text.length !== walk.currentNode.data.length) continue;
        for (let from = text.indexOf(word); from >= 0; from = text.indexOf(word, from + word.length)) {
          const range = new Range();
          range.setStart(walk.currentNode, from);
          range.setEnd(walk.currentNode, from + word.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  };

  const filter = () => {
    texts ??= questions.map((q) => [...q.querySelectorAll(".h, .x, dd, .f")].map((e) => e.textContent).join("\n").toLowerCase());
    const word = words.value.trim().toLowerCase();
    const shown = questions.filter((q, n) => {
      const fits = (!word || texts[n].includes(word)) && (!kind.value || q.classList.contains(kind.value))
        && (!category.value || q.dataset.c === category.value);
      q.hidden = !fits;
      return fits;
    });
    for (const list of lists) list.hidden = !list.querySelector(".q:not([hidden])");
    count.textContent = shown.length === questions.length
      ? `${questions.length} questions` : `${shown.length} of ${questions.length} questions`;
    shade(shown, word);
  };
  for (const field of [words, kind, category]) field.addEventListener("input", filter);

  const target = () => {
    const question = location.hash.length > 1 && at(location.hash.slice(1));
    if (!question || !question.hidden) return;
    words.value = kind.value = category.value = "";
    filter();
    question.scrollIntoView();
  };
  addEventListener("hashchange", target);

  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.activeElement === words) {
      words.value = "";
      filter();
    }
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    words.focus();
    find.scrollIntoView({ block: "nearest" });
  });
  find.hidden = false;
  if (words.value || kind.value || category.value) filter();  // what a browser kept of an earlier visit
})();
