/**
 * Serves the console: one document, with its script and its style inside. The content security policy knows both by their hashes.
 */
import { createHash } from "node:crypto"
import { gzipSync } from "node:zlib"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Layer from "effect/Layer"
import * as Bundle from "./bundle.ts"

/** Relative addresses in the document are below the prefix, so it works at any prefix and behind any proxy. */
const document = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Event bus</title>
<link rel="icon" href="data:,">
<style>${Bundle.style}</style>
</head>
<body>
<div id="root"><noscript>The console needs JavaScript. The admin API works without it.</noscript></div>
<script>${Bundle.script}</script>
</body>
</html>
`

const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/** With trusted types, no text of a record can become HTML or a script, whatever the script does. */
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(Bundle.script)}`,
  `style-src ${hashOf(Bundle.style)}`,
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'"
].join("; ")

const etag = `"${createHash("sha256").update(document).digest("hex").slice(0, 16)}"`

const headers = {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  // A browser asks each time, and gets a new version at once.
  ...{ "cache-control": "no-cache", vary: "accept-encoding", etag }
}

const contentType = "text/html; charset=utf-8"
const plain = new TextEncoder().encode(document)
let zipped: Uint8Array | undefined

/** Adds the route of the page, which has nothing of the program in it and needs no credential. */
export const layer = (path: `/${string}`): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  HttpRouter.add("GET", path, (request) =>
    Effect.sync(() => {
      if (request.headers["if-none-match"] === etag) return HttpServerResponse.empty({ status: 304, headers })
      if (!/\bgzip\b/.test(request.headers["accept-encoding"] ?? ""))
        return HttpServerResponse.uint8Array(plain, { headers, contentType })
      zipped ??= gzipSync(plain, { level: 9 })
      return HttpServerResponse.uint8Array(zipped, { headers: { ...headers, "content-encoding": "gzip" }, contentType })
    })
  )
