"use strict";

/* Shows a question and its right answer. */

function drawItem(section, sample) {
  section.querySelector(".item").textContent = sample.question;
  section.querySelector(".legend .right b").textContent = [sample.right].flat().join(" or ");
}

/** What lists call a sample. */
function nameOf(sample) {
  return sample.question;
}

function isAbout(sample, wanted) {
  return sample.question.toLowerCase().includes(wanted);
}
