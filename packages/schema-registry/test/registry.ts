/** A schema registry in memory, behind an `HttpClient` or a socket: what it was asked, and how it is today. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { SchemaRegistry } from "@eventbus/schema-registry"
import { Context, Effect, Layer } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"

export interface Entry {
  /** As text or data. */
  readonly schema: object | string
  readonly schemaType?: string
  readonly references?: ReadonlyArray<SchemaRegistry.Reference>
}

export interface Answer {
  readonly status: number
  readonly text: string
}

interface State {
  readonly byId: Map<number, Entry>
  /** By `subject/version`. */
  readonly versions: Map<string, Entry>
  /** `METHOD url authorization body`, one for each request. */
  readonly requests: Array<string>
  /** Overrides every answer; with `"silent"` the registry never answers. */
  instead: Answer | "silent" | undefined
  /** The reasons why the next versions of each subject are not compatible. */
  incompatible: ReadonlyArray<string>
}

export class TestRegistry extends Context.Service<TestRegistry, State>()("TestRegistry") {}

const failed = (status: number, code: number, message: string): Answer => ({
  status,
  text: JSON.stringify({ error_code: code, message })
})
const notFound = (code: number) => failed(404, code, "no")
const found = (value: object): Answer => ({ status: 200, text: JSON.stringify(value) })
const textOf = ({ schema }: Entry) => (typeof schema === "string" ? schema : JSON.stringify(schema))
const shown = (entry: Entry) => found({ ...entry, schema: textOf(entry) })

const versionsOf = (registry: State, subject: string) =>
  Array.from(registry.versions).filter(([key]) => key.slice(0, key.lastIndexOf("/")) === subject)

/** One answer of Confluent's REST interface. */
const answer = (registry: State, path: string, body: string): Answer => {
  const [, kind, first = "", second = "", third = ""] = path.split("/").map(decodeURIComponent)
  if (kind === "schemas") {
    const entry = registry.byId.get(Number(third || second))
    return entry === undefined ? notFound(40403) : shown(entry)
  }
  if (kind === "compatibility") {
    if (versionsOf(registry, second).length === 0) return notFound(40401)
    return found({ is_compatible: registry.incompatible.length === 0, messages: registry.incompatible })
  }
  if (body !== "") return posted(registry, first, second === "versions", JSON.parse(body) as Entry)
  const entry = registry.versions.get(`${first}/${third}`)
  return entry === undefined ? notFound(40402) : shown(entry)
}

const posted = (registry: State, subject: string, isRegistration: boolean, entry: Entry): Answer => {
  const isSame = ([, other]: readonly [unknown, Entry]) =>
    textOf(other) === textOf(entry) && other.schemaType === entry.schemaType
  const versions = versionsOf(registry, subject)
  const version = versions.findIndex(isSame) + 1
  const id = Array.from(registry.byId).find(isSame)?.[0]
  if (id !== undefined && version > 0) return found({ subject, id, version, schema: textOf(entry) })
  if (!isRegistration) return notFound(versions.length === 0 ? 40401 : 40403)
  if (versions.length > 0 && registry.incompatible.length > 0) return failed(409, 409, "incompatible")
  registry.versions.set(`${subject}/${versions.length + 1}`, entry)
  const newId = id ?? Math.max(0, ...registry.byId.keys()) + 1
  registry.byId.set(newId, entry)
  return found({ id: newId })
}

export const makeState = (): State => ({
  byId: new Map(),
  versions: new Map(),
  requests: [],
  instead: undefined,
  incompatible: []
})

const client = (registry: State) =>
  HttpClient.make((request, url) =>
    Effect.suspend(() => {
      const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
      registry.requests.push([request.method, url, request.headers["authorization"], body].join(" ").trim())
      if (registry.instead === "silent") return Effect.never
      const { status, text } = registry.instead ?? answer(registry, url.pathname.replace(/^.x\b/, ""), body)
      return Effect.succeed(HttpClientResponse.fromWeb(request, new Response(text, { status })))
    })
  )

const http = Layer.unwrap(
  Effect.sync(() => {
    const registry = TestRegistry.of(makeState())
    return Layer.succeed(TestRegistry, registry).pipe(
      Layer.merge(Layer.succeed(HttpClient.HttpClient, client(registry)))
    )
  })
)

/** The registry, and a client of it. */
export const layer = (options: Partial<SchemaRegistry.Options> = {}) =>
  Layer.provideMerge(SchemaRegistry.layer({ url: "http://registry:8081", ...options }), http)

/** The registry on a port of this machine, as its URL, until the Scope closes. */
export const listening = (registry: State) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
      const server = createServer((request, response) => {
        const body: Array<Buffer> = []
        request.on("data", (bytes: Buffer) => body.push(bytes))
        request.on("end", () => {
          const text = Buffer.concat(body).toString()
          registry.requests.push([request.method, request.url, request.headers.authorization, text].join(" ").trim())
          if (registry.instead === "silent") return
          const { pathname } = new URL(request.url ?? "", "http://registry")
          const { status, text: answered } = registry.instead ?? answer(registry, pathname, text)
          response.writeHead(status, { "content-type": "application/vnd.schemaregistry.v1+json" }).end(answered)
        })
      })
      const close = () => {
        server.close()
        server.closeAllConnections()
      }
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }))
      )
    }),
    ({ close }) => Effect.sync(close)
  )

/** A value in the wire format. */
export const framed = (id: number, body: Uint8Array): Uint8Array =>
  Uint8Array.of(0, id >> 24, id >> 16, id >> 8, id, ...body)
