/** A schema registry in memory, behind an `HttpClient`: what it was asked, and how it is today. */
import { SchemaRegistry } from "@eventbus/avro"
import { Context, Effect, Layer } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"

export interface Entry {
  /** As JSON text or data. */
  readonly schema: object | string
  readonly schemaType?: string
  readonly references?: ReadonlyArray<{ readonly name: string; readonly subject: string; readonly version: number }>
}

export interface Answer {
  readonly status: number
  readonly text: string
}

export class TestRegistry extends Context.Service<
  TestRegistry,
  {
    readonly byId: Map<number, Entry>
    /** By `subject/version`. */
    readonly versions: Map<string, Entry>
    /** `METHOD url authorization body`, one for each request. */
    readonly requests: Array<string>
    /** Overrides every answer; with `"silent"` the registry never answers. */
    instead: Answer | "silent" | undefined
  }
>()("TestRegistry") {}

const notFound = (code: number): Answer => ({ status: 404, text: JSON.stringify({ error_code: code, message: "no" }) })
const found = (value: object): Answer => ({ status: 200, text: JSON.stringify(value) })
const textOf = ({ schema }: Entry) => (typeof schema === "string" ? schema : JSON.stringify(schema))
const shown = (entry: Entry) => found({ ...entry, schema: textOf(entry) })

const answer = (registry: TestRegistry["Service"], path: string, body: string): Answer => {
  const [, kind, first = "", second = "", version = ""] = path.split("/")
  if (kind === "schemas") {
    const entry = registry.byId.get(Number(version || second))
    return entry === undefined ? notFound(40403) : shown(entry)
  }
  const subject = decodeURIComponent(first)
  if (body === "") {
    const entry = registry.versions.get(`${subject}/${version}`)
    return entry === undefined ? notFound(40402) : shown(entry)
  }
  const { schema } = JSON.parse(body) as { readonly schema: string }
  const id = Array.from(registry.byId).find(([, entry]) => textOf(entry) === schema)?.[0]
  if (id !== undefined) return found({ id })
  if (!path.endsWith("/versions")) return notFound(40403)
  registry.byId.set(registry.byId.size + 1, { schema })
  return found({ id: registry.byId.size })
}

const client = (registry: TestRegistry["Service"]) =>
  HttpClient.make((request, url) =>
    Effect.suspend(() => {
      const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
      registry.requests.push([request.method, url, request.headers["authorization"], body].join(" ").trim())
      const { status, text } =
        registry.instead === "silent"
          ? { status: 0, text: "" }
          : (registry.instead ?? answer(registry, url.pathname.replace(/^.x\b/, ""), body))
      return status === 0
        ? Effect.never
        : Effect.succeed(HttpClientResponse.fromWeb(request, new Response(text, { status })))
    })
  )

const http = Layer.unwrap(
  Effect.sync(() => {
    const registry = TestRegistry.of({ byId: new Map(), versions: new Map(), requests: [], instead: undefined })
    return Layer.succeed(TestRegistry, registry).pipe(
      Layer.merge(Layer.succeed(HttpClient.HttpClient, client(registry)))
    )
  })
)

/** The registry, and a client of it. */
export const layer = (options: Partial<SchemaRegistry.Options> = {}) =>
  Layer.provideMerge(SchemaRegistry.layer({ url: "http://registry:8081", ...options }), http)

/** A value in the wire format. */
export const framed = (id: number, body: Uint8Array): Uint8Array =>
  Uint8Array.of(0, id >> 24, id >> 16, id >> 8, id, ...body)
