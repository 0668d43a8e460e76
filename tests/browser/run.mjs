// SPDX-License-Identifier: MIT
// Goal: a real browser is content with what `gori serve` gives it.
//
// Method: starts the program on a port of the system's choice, drives Debian's Chromium to the site,
// and looks at what the browser itself says: what it rendered, what it asked for, over how many
// connections, and what it could keep.  Usage: run.mjs PROGRAM SITE OUTPUT_FOLDER

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [program, site, output] = process.argv.slice(2);
if (!output) {
  console.error("usage: run.mjs PROGRAM SITE OUTPUT_FOLDER");
  process.exit(2);
}

const BROWSER = process.env.GORI_BROWSER ?? "/usr/bin/chromium";
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/** Starts the server; resolves with the process and its address once it says that it listens. */
async function startServer() {
  const server = spawn(program, ["serve", site, "--listen", "127.0.0.1:0"],
    { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => server.once("exit", (code, signal) => resolve(code ?? signal)));
  for await (const line of createInterface({ input: server.stdout })) {
    const match = /listening on (\S+:\d+)/.exec(line);
    if (match) {
      return { server, ended, origin: `http://${match[1]}` };
    }
  }
  throw new Error(`the server ended before it listened: ${await ended}`);
}

/** What a page did on the network, as the browser's own protocol tells it. */
async function watch(context) {
  const page = await context.newPage();
  const seen = { page, statuses: [], connections: new Set(), reused: 0, protocols: new Set(),
    complaints: [], urls: [] };
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  session.on("Network.responseReceivedExtraInfo", (event) => seen.statuses.push(event.statusCode));
  session.on("Network.responseReceived", ({ response }) => {
    seen.urls.push(response.url);
    seen.protocols.add(response.protocol);
    if (!response.fromDiskCache) {
      seen.connections.add(response.connectionId);
      seen.reused += response.connectionReused ? 1 : 0;
    }
  });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) {
      seen.complaints.push(message.text());
    }
  });
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  page.on("requestfailed", (request) =>
    seen.complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  return seen;
}

async function pageLoads({ page, ...seen }, origin) {
  const response = await page.goto(`${origin}/`, { waitUntil: "networkidle" });
  assert.equal(response.status(), 200);
  assert.match(response.headers()["content-type"], /^text\/html/);
  assert.match(await page.title(), /gori/);
  assert.deepEqual(seen.complaints, []);
  assert.ok(seen.urls.every((url) => url.startsWith(origin)), `foreign requests: ${seen.urls}`);
  assert.deepEqual([...seen.protocols], ["http/1.1"]);
}

async function everythingIsApplied({ page }) {
  const applied = await page.evaluate(() => ({
    style: getComputedStyle(document.documentElement).getPropertyValue("--accent").trim(),
    script: document.documentElement.dataset.script,
    images: [...document.images].map((image) => image.complete && image.naturalWidth > 0),
    protocol: document.querySelector("[data-fact=protocol]").textContent,
  }));
  assert.notEqual(applied.style, "", "the stylesheet is not applied");
  assert.equal(applied.script, "on", "the script did not run");
  assert.ok(applied.images.length > 0 && applied.images.every(Boolean), "an image is not shown");
  assert.equal(applied.protocol, "HTTP/1.1");
}

async function connectionsAreKept({ page, ...seen }, origin) {
  assert.ok(seen.connections.size < seen.urls.length, "every request opened a connection");
  await page.click("nav a[href='/how.html']");
  await page.waitForURL(`${origin}/how.html`);
  assert.match(await page.locator("h1").textContent(), /request/i);
  await page.goBack({ waitUntil: "networkidle" });
}

async function nothingIsSentTwice(seen) {
  seen.statuses.length = 0;
  await seen.page.evaluate(async () => {
    for (const path of ["/style.css", "/script.js", "/ring.svg"]) {
      const response = await fetch(path, { cache: "no-cache" });
      await response.arrayBuffer();
    }
  });
  await seen.page.reload({ waitUntil: "networkidle" });
  const fresh = seen.statuses.filter((status) => status !== 304);
  assert.ok(seen.statuses.length >= 4, `too few requests: ${seen.statuses}`);
  assert.deepEqual(fresh, [], "a reload fetched again what had not changed");
  assert.ok(seen.reused > 0, "no connection was used twice");
}

async function askingWorks({ page }) {
  await page.click("#ask");
  await page.waitForFunction(() => document.querySelector("#answer").dataset.state === "done");
  assert.match(await page.locator("#answer").textContent(), /median/);
}

async function missingPage(context, origin) {
  const page = await context.newPage();
  const response = await page.goto(`${origin}/no/such/page`);
  assert.equal(response.status(), 404);
  await page.screenshot({ path: `${output}/404.png` });
  await page.close();
}

async function pictures(browser, origin) {
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 1100, height: 900 } });
    await page.goto(`${origin}/`, { waitUntil: "networkidle" });
    await page.screenshot({ path: `${output}/${colorScheme}.png`, fullPage: true });
    await page.close();
  }
}

async function test(browser, origin) {
  const context = await browser.newContext();
  const seen = await watch(context);
  const steps = { pageLoads, everythingIsApplied, connectionsAreKept, nothingIsSentTwice, askingWorks };
  for (const [name, step] of Object.entries(steps)) {
    await step(seen, origin);
    console.log(`ok ${name}`);
  }
  assert.deepEqual(seen.complaints, []);
  await missingPage(context, origin);
  console.log("ok missingPage");
  await context.close();
  await pictures(browser, origin);
}

mkdirSync(output, { recursive: true });
const { server, ended, origin } = await startServer();
const browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
try {
  await test(browser, origin);
} finally {
  await browser.close();
  server.kill("SIGTERM");
}
assert.equal(await ended, 0, "the server did not end well");
console.log("ok serverStops");
