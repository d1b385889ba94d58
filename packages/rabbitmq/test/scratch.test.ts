import { assert, it } from "@effect/vitest"
import { MessageBroker, MessageBrokerFactory, Message, MessageConsumer, Topic } from "@eventbus/messaging"
import { Context, Effect, Layer, Result, Exit } from "effect"
import { asOperator, depth, letters, onRabbitMq, reachable, testBroker } from "./rabbit.ts"
import { Boom, probing, sendOrder, until, orders } from "./rig.ts"
import { control } from "./control.ts"
import { proxyTo } from "./proxy.ts"

onRabbitMq("attack", () => {
  it.live("throwing serde", () => Effect.gen(function* () {
    const { broker, prefix } = yield* testBroker()
    const t = Topic.make("odd", { name: "odd", encode: (x: number) => { if (x === 0) throw new Error("enc"); return Result.succeed(Buffer.from(String(x))) }, decode: (b: any) => { if (String(b) === "1") throw new Error("dec"); return Result.succeed(Number(String(b))) } } as any) as Topic.Topic<number>
    const seen: any[] = []; const dl: any[] = []
    yield* broker.consume(MessageConsumer.make({ topics: [t], groupId: "g", concurrency: 1, handle: (m) => Effect.sync(() => seen.push(m.payload)) }), { onDeadLetter: (x) => dl.push(x) })
    for (const x of [0, 1, 2, 3]) {
      const ctx = yield* Layer.build(MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker.MessageBroker, broker)] }))
      const p = yield* Context.get(ctx, MessageBrokerFactory.MessageBrokerFactory).getDefaultProducer
      console.log("S", x, JSON.stringify(yield* Effect.exit(p.send(x, t))).slice(0, 200))
    }
    yield* Effect.sleep("1500 millis")
    console.log("S seen", seen, "letters", dl)
  }).pipe(Effect.scoped), 30000)

  it.live("403 on one exchange", () => Effect.gen(function* () {
    const { broker: admin, prefix } = yield* testBroker()
    yield* probing(admin)
    yield* control("add_user", prefix, "pw"); 
    yield* Effect.addFinalizer(() => control("delete_user", prefix))
    yield* control("set_permissions", "-p", "/", prefix, ".*", `^(?!${prefix}\\.secret$).*`, ".*")
    const { broker } = yield* testBroker({ username: prefix, password: (yield* Effect.promise(() => import("effect"))).Redacted.make("pw") }, prefix)
    const secret = Topic.named(orders, "secret")
    const results = yield* Effect.forEach(Array.from({ length: 40 }, (_, i) => i), (i) => Effect.result(i === 7 ? Effect.flatMap(Message.of({ id: i }, secret), broker.send) : sendOrder(broker, i)), { concurrency: "unbounded" })
    console.log("403", results.map((r) => Result.isSuccess(r) ? "." : (r.failure as any).reason).join(" "))
  }).pipe(Effect.scoped), 60000)

  it.live("half-open", () => Effect.gen(function* () {
    const net = yield* Effect.promise(() => import("node:net"))
    const conns: any[] = []
    let frozen = false
    const server = net.createServer((inner) => { const outer = net.connect(5672, "127.0.0.1"); conns.push([inner, outer]); inner.on("error", () => {}); outer.on("error", () => {}); inner.pipe(outer); outer.pipe(inner); inner.on("close", () => outer.destroy()); outer.on("close", () => inner.destroy()); if (frozen) { inner.unpipe(); outer.unpipe(); inner.pause(); outer.pause() } })
    yield* Effect.promise(() => new Promise<void>((r) => server.listen(0, "127.0.0.1", r)))
    const { broker, queue } = yield* testBroker({ hosts: [`127.0.0.1:${(server.address() as any).port}`], heartbeat: "1 second", sendTimeout: "20 seconds" })
    const probe = yield* probing(broker)
    yield* sendOrder(broker, 0)
    frozen = true
    for (const [a, b] of conns) { a.unpipe(); b.unpipe(); a.pause(); b.pause() }
    const t = Date.now()
    const h = yield* Effect.timed(broker.health)
    console.log("H", JSON.stringify(h[1]), Date.now() - t)
    yield* Effect.sleep("1 seconds")
    frozen = false
    const results = yield* Effect.forEach([1, 2, 3, 4, 5], (id) => Effect.result(sendOrder(broker, id)), { concurrency: "unbounded" })
    console.log("H", results.map(Result.isSuccess), Date.now() - t)
    yield* Effect.sleep("500 millis")
    console.log("H", probe.calls.map((c) => c.payload.id))
    yield* Effect.addFinalizer(() => Effect.sync(() => { server.close(); for (const [a] of conns) a.destroy() }))
  }).pipe(Effect.scoped), 60000)

  it.live("many waits", () => Effect.gen(function* () {
    const { broker } = yield* testBroker()
    const due = new Map<number, number>(); const late: number[] = []; let early = 0; let done = 0
    const waits = [1000, 2000, 4000]
    yield* broker.consume(MessageConsumer.make({ topics: [orders], groupId: "g", concurrency: 50, retry: { maxAttempts: 4, initialInterval: 1000 },
      handle: ({ payload: { id }, attempt }) => Effect.suspend(() => {
        const now = Date.now(); const d = due.get(id)
        if (d !== undefined) { if (now < d) early++; late.push(now - d) }
        if (attempt - 1 < (id % 3) + 1) { due.set(id, now + waits[attempt - 1]!); return Effect.fail(new Boom({ message: "x" })) }
        done++; return Effect.void
      }) }), { onDeadLetter: () => {} })
    yield* Effect.forEach(Array.from({ length: 3000 }, (_, i) => i), (i) => sendOrder(broker, i), { concurrency: 50 })
    yield* until("all", () => done === 3000)
    late.sort((a, b) => a - b)
    console.log("W early", early, "p50", late[late.length >> 1], "p99", late[Math.floor(late.length * 0.99)], "max", late.at(-1), "n", late.length)
  }).pipe(Effect.scoped), 60000)
})
