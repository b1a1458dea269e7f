// A name that is looked for is found before text that mentions it.
var Scorer = {
  score: function (result) {
    var query = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
    var title = String(result[1] || "").toLowerCase().replace(/\(.*$/, ""), score = result[4];
    var last = title.split(".").pop();
    if (title === "chainrule." + query || title === query) return score + 200;
    if (last === query) return score + 150;
    return score;
  },
  objNameMatch: 40, objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2
};
