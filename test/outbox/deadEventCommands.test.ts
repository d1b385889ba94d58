/** `eventbus outbox` on PostgreSQL: one that answers, one that is away, and one that is silent. */
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { EventEnvelope, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import { ConfigProvider, Effect, Layer } from "effect"
import { eventbus } from "../../packages/cli/test/eventbus.ts"
import { pgIn } from "./clients.ts"
import { onDatabases } from "./databases.ts"
import { namedSchema } from "./processes.ts"

const module = fileURLToPath(new URL("processes/outboxStore.ts", import.meta.url))

const outbox = (at: Readonly<Record<string, string>>, verb: string, ...args: ReadonlyArray<string>) =>
  Effect.provideService(
    eventbus("/nowhere", "outbox", ...verb.split(" "), "--outbox", module, ...args),
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown(at)
  )

/** A server that accepts connections and says nothing. */
const silentPort = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
    const server = createServer(() => {})
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      resume(Effect.succeed({ port, close: () => server.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

onDatabases("eventbus outbox", () => {
  it.live("OPS-12 OPS-22 groups and replays the dead events of a PostgreSQL", () =>
    Effect.gen(function* () {
      const schema = yield* namedSchema
      const store = Layer.provideMerge(OutboxStore.layer(), Layer.effectDiscard(OutboxSchema.migrate())).pipe(
        Layer.provide(pgIn(schema, 1))
      )
      yield* Effect.gen(function* () {
        const { insertNew, markDead } = yield* OutboxStore.OutboxStore
        yield* insertNew([yield* EventEnvelope.make({ eventType: "Placed", eventId: "e-1", payload: 1 })])
        yield* markDead("e-1", "Refused: order 17 is closed")
      }).pipe(Effect.provide(store))
      const groups = yield* outbox({ SCHEMA: schema }, "dead groups")
      assert.deepStrictEqual([groups.code, groups.err], [0, ""])
      assert.match(groups.out, /^1 group, 1 dead event\n/)
      assert.strictEqual((yield* outbox({ SCHEMA: schema }, "replay", "e-1", "--reason", "INC-1204")).code, 0)
      assert.match((yield* outbox({ SCHEMA: schema }, "dead groups")).out, /^0 groups, 0 dead events\n$/)
    })
  )

  it.live("OPS-22 a PostgreSQL that is away or silent is exit code 3 with the cause, and no empty list", () =>
    Effect.gen(function* () {
      const away = yield* outbox({ SCHEMA: "public", PORT: "1" }, "dead list", "--json")
      assert.deepStrictEqual([away.code, away.out], [3, ""])
      assert.match(away.err, /^Outbox store: read dead events failed: .*ECONNREFUSED/)
      const { port } = yield* silentPort
      const silent = yield* outbox({ SCHEMA: "public", PORT: String(port) }, "dead list", "--json")
      assert.deepStrictEqual([silent.code, silent.out], [3, ""])
      assert.match(silent.err, /^Outbox store: read dead events failed: [^\n]+\n$/)
    })
  )
}, ["PostgreSQL"])
