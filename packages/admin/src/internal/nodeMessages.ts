/**
 * Carries a request of Node.js to a function from `Request` to `Response`, and its answer back.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { ReadableStream } from "node:stream/web"
import * as StuckCallers from "./stuckCallers.ts"

interface NodeRequest extends IncomingMessage {
  readonly body?: unknown
  readonly originalUrl?: string
}

type Body = NonNullable<RequestInit["body"]>

type Handler = (request: Request, peer: { readonly remoteAddress: string | undefined }) => Promise<Response>

/** Never throws, and always ends the response. */
export const respond = (handler: Handler, request: NodeRequest, response: ServerResponse): void => {
  const aborted = new AbortController()
  response.once("close", () => aborted.abort())
  const answered = async () => {
    const { remoteAddress } = request.socket
    const answer = await handler(requestOf(request, aborted.signal), { remoteAddress })
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (answer.headers.get("content-type") === "text/event-stream") StuckCallers.end(response)
    if (answer.body === null) response.end()
    else await pipeline(Readable.fromWeb(answer.body as ReadableStream), response)
  }
  answered().catch(() => {
    // The caller has gone, or sent a URL or a header that no request can have.
    if (response.headersSent) return response.destroy()
    response.writeHead(400, { "content-type": "application/json" })
    response.end(JSON.stringify({ _tag: "InvalidRequest", message: "The request cannot be read.", issues: [] }))
  })
}

const requestOf = (request: NodeRequest, signal: AbortSignal): Request => {
  const { method = "GET", headers } = request
  const url = new URL(request.originalUrl ?? request.url ?? "/", `http://${headers.host ?? "localhost"}`)
  const body = method === "GET" || method === "HEAD" ? undefined : bodyOf(request)
  // HTTP/2 has the method and the path among its headers.
  const isLeftOut = (name: string) => name.startsWith(":") || (wasRead(request) && ofUnreadBody.has(name))
  const kept = Object.entries(headers).flatMap(
    ([name, value]): ReadonlyArray<[string, string]> =>
      value === undefined || isLeftOut(name) ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]]
  )
  // Node.js asks for `duplex` with a stream, and its types do not know it.
  const init = { method, headers: kept, signal, ...(body === undefined ? {} : { body, duplex: "half" }) }
  return new Request(url, init as RequestInit)
}

/** Headers that describe a body as it was before a parser read it. */
const ofUnreadBody = new Set(["content-encoding", "content-length", "transfer-encoding"])

const wasRead = ({ body, readableEnded, readableDidRead }: NodeRequest): boolean =>
  body !== undefined && body !== null && (readableEnded || readableDidRead)

/** The body as a parser left it: behind `express.json()` and in Fastify the stream is at its end, and would give an empty one. */
const bodyOf = (request: NodeRequest): Body => {
  const { body } = request
  if (!wasRead(request)) return Readable.toWeb(request) as unknown as Body
  if (typeof body === "string" || body instanceof Uint8Array) return body as Body
  return JSON.stringify(body)
}
