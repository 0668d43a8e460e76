/* SPDX-License-Identifier: MIT */
/* Shows what the browser knows about how this page came to it.  No library, no request elsewhere. */
"use strict";

document.documentElement.dataset.script = "on";

const PROTOCOLS = { "http/1.0": "HTTP/1.0", "http/1.1": "HTTP/1.1", h2: "HTTP/2", h3: "HTTP/3" };

const milliseconds = (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
const bytes = (value) => (value < 1000 ? `${value} B` : `${(value / 1000).toFixed(1)} kB`);

function show(fact, text) {
  document.querySelector(`[data-fact=${fact}]`).textContent = text;
}

function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text ?? "";
  made.className = className ?? "";
  return made;
}

/* A bar from the request to the first byte, and one from there to the last. */
function track(entry, end) {
  const line = element("span", "", "track");
  const bars = [["wait", entry.startTime, entry.responseStart],
    ["", entry.responseStart || entry.startTime, entry.responseEnd]];
  for (const [className, from, to] of bars) {
    const bar = element("i", "", className);
    bar.style.left = `${(100 * from) / end}%`;
    bar.style.width = `${(100 * Math.max(to - from, 0)) / end}%`;
    line.append(bar);
  }
  return line;
}

function row(entry, end) {
  const path = new URL(entry.name).pathname;
  const line = element("tr");
  const when = element("td");
  when.append(track(entry, end));
  const kept = entry.transferSize < entry.encodedBodySize;
  line.append(element("td", path), when, element("td", milliseconds(entry.responseEnd - entry.startTime)),
    element("td", kept ? "kept" : bytes(entry.encodedBodySize)));
  return line;
}

function showFacts() {
  const [page] = performance.getEntriesByType("navigation");
  const entries = [page, ...performance.getEntriesByType("resource")];
  const end = Math.max(...entries.map((entry) => entry.responseEnd));
  show("protocol", PROTOCOLS[page.nextHopProtocol] ?? page.nextHopProtocol);
  show("first-byte", milliseconds(page.responseStart));
  show("complete", milliseconds(end));
  show("bytes", bytes(entries.reduce((sum, entry) => sum + entry.transferSize, 0)));
  document.querySelector("#waterfall").replaceChildren(...entries.map((entry) => row(entry, end)));
}

async function askOnce() {
  const from = performance.now();
  const response = await fetch("/ring.svg", { cache: "no-cache" });
  await response.arrayBuffer();
  return performance.now() - from;
}

async function askFiftyTimes(button, answer) {
  button.disabled = true;
  answer.dataset.state = "asking";
  try {
    const times = [];
    while (times.length < 50) {
      times.push(await askOnce());
      answer.textContent = `${times.length} of 50 …`;
    }
    showTimes(times, answer);
  } catch {
    answer.textContent = "The server does not answer any more.";
  }
  answer.dataset.state = "done";
  button.disabled = false;
}

function showTimes(times, answer) {
  const sorted = [...times].sort((a, b) => a - b);
  const longest = sorted.at(-1);
  answer.textContent = `median ${sorted[25].toFixed(2)} ms, best ${sorted[0].toFixed(2)} ms, ` +
    `worst ${longest.toFixed(2)} ms, browser included`;
  document.querySelector("#plot").replaceChildren(...times.map((time) => {
    const bar = element("i");
    bar.style.height = `${(100 * time) / longest}%`;
    return bar;
  }));
}

const button = document.querySelector("#ask");
if (button) {
  const answer = document.querySelector("#answer");
  button.addEventListener("click", () => askFiftyTimes(button, answer));
  window.addEventListener("load", () => setTimeout(showFacts));
}
