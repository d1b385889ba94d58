/** Requests whose work is done once among the processes of a group. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import * as LeaseEntries from "../../src/internal/replay/leaseEntries.ts"
import * as Journal from "../../src/internal/replay/replayJournal.ts"
import * as TopicScan from "../../src/internal/replay/topicScan.ts"
import * as Entries from "../../src/internal/requests/requestEntries.ts"
import * as Requests from "../../src/internal/requests/requestJournal.ts"
import * as RunEntries from "../../src/internal/runs/runEntries.ts"
import type * as RequestJournal from "../../src/RequestJournal.ts"

const id = "a".repeat(64)
const request = { id, fingerprint: "b".repeat(64) }
const answer = { status: 200, body: '{"replayed":1}' }
const journal = "orders.DLT.replays"

const setUp = Effect.fnUntraced(function* (config: ReadonlyArray<readonly [string, string]> = []) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders.DLT", { partitions: 1 })
  if (config.length > 0) yield* memory.createTopic(journal, { partitions: 1, config: new Map(config) })
})

const processOf = (hostname: string, groupId = "billing") =>
  MemoryBroker.MemoryBroker.useSync(({ broker }) =>
    Requests.make({ broker, groupId, deadLetterTopic: "orders.DLT", hostname })
  ).pipe(Effect.map(({ claim }) => ({ claim: (asked: RequestJournal.Request) => inTime(claim(asked), "10 millis") })))

describe("the journal of requests", () => {
  scenario("OPS-18 among processes that claim at once, one is granted, and the others learn its host", () =>
    Effect.gen(function* () {
      yield* setUp()
      const hosts = ["host-a", "host-b", "host-c", "host-d"]
      const claims = yield* Effect.forEach(
        hosts,
        (host) => Effect.flatMap(processOf(host), ({ claim }) => claim(request)),
        { concurrency: "unbounded" }
      )
      const granted = hosts.filter((_, index) => claims[index]?._tag === "Granted")
      assert.strictEqual(granted.length, 1)
      for (const claim of claims) {
        if (claim._tag === "Taken") assert.deepStrictEqual([claim.host, claim.answer], [granted[0], undefined])
      }
    })
  )

  for (const [name, config] of [
    ["a new journal", []],
    ["a journal with the times of its writers", [["cleanup.policy", "compact"]]]
  ] as const) {
    scenario(`OPS-18 an answer is kept for 24 hours, and then the work is done anew (${name})`, () =>
      Effect.gen(function* () {
        yield* setUp(config)
        const first = yield* (yield* processOf("host-a")).claim(request)
        assert.strictEqual(first._tag, "Granted")
        if (first._tag !== "Granted") return
        yield* advance("1 hour")
        yield* inTime(first.keep(answer), "10 millis")
        yield* advance("23 hours")
        const { claim } = yield* processOf("host-b")
        const taken = yield* claim(request)
        assert.deepInclude(taken, { _tag: "Taken", host: "host-a", fingerprint: request.fingerprint, answer })
        yield* advance("2 hours")
        assert.strictEqual((yield* claim(request))._tag, "Granted")
      })
    )
  }

  scenario(
    "OPS-18 a claim that is released is free at once, and one of another group, or for another id, is another one",
    () =>
      Effect.gen(function* () {
        yield* setUp()
        const { claim } = yield* processOf("host-a")
        const first = yield* claim(request)
        if (first._tag === "Granted") yield* inTime(first.release)
        const other = yield* processOf("host-b")
        assert.strictEqual((yield* other.claim(request))._tag, "Granted")
        assert.strictEqual((yield* claim(request))._tag, "Taken")
        assert.strictEqual((yield* claim({ ...request, id: "c".repeat(64) }))._tag, "Granted")
        assert.strictEqual((yield* (yield* processOf("host-c", "shipping")).claim(request))._tag, "Granted")
      })
  )

  scenario("OPS-18 claims that are over are deleted with the next one, so that the journal does not grow", () =>
    Effect.gen(function* () {
      yield* setUp()
      const { claim } = yield* processOf("host-a")
      for (const each of ["1", "2", "3"]) yield* claim({ ...request, id: each.repeat(64) })
      yield* advance("25 hours")
      yield* claim(request)
      const { log } = yield* MemoryBroker.MemoryBroker
      const ended = (yield* log(journal, 0)).filter(({ value }) => value === null)
      assert.strictEqual(ended.length, 3)
    })
  )

  scenario("OPS-18 readers of replays, leases and runs take the entries of requests for none", () =>
    Effect.gen(function* () {
      yield* setUp()
      const first = yield* (yield* processOf("host-a")).claim(request)
      if (first._tag === "Granted") yield* inTime(first.keep(answer))
      const { broker, log } = yield* MemoryBroker.MemoryBroker
      const records = yield* log(journal, 0)
      assert.strictEqual(records.length, 2)
      const [leases, runs] = [new Map(), new Map()]
      for (const record of records) {
        const found: ConsumerRecord = record
        LeaseEntries.apply(leases, "billing", found, 0)
        RunEntries.apply(runs, "billing", found)
      }
      assert.deepStrictEqual([leases.size, runs.size], [0, 0])
      const scan = yield* TopicScan.open({ broker, admin: yield* broker.admin })
      const logOffsets = [{ partition: 0, logStart: 0n, logEnd: 2n }]
      const journals = yield* inTime(Journal.load(scan, journal, logOffsets, ["billing"]))
      assert.deepStrictEqual(journals.get("billing"), Journal.empty)
    })
  )
})

describe("entries of requests", () => {
  const encoder = new TextEncoder()
  const claim = "0f8fad5b-d9cb-469f-a165-70867728950e"
  const found = (key: string, value: object | null): ConsumerRecord => ({
    ...{ topic: journal, partition: 0, offset: 7n, timestamp: 1_000, headers: [] },
    key: encoder.encode(key),
    value: value === null ? null : encoder.encode(JSON.stringify(value))
  })
  const entry = { v: 1, host: "host-a", pid: 7, fingerprint: "b".repeat(64) }
  const read = (key: string, value: object | null) => {
    const claims = new Map<string, Entries.Claim>()
    Entries.apply(claims, "billing", found(key, value))
    return claims.get(claim)
  }

  it("OPS-18 an entry of a newer version is taken as far as its fields are known; a malformed one changes nothing", () => {
    const key = `request/${id}/${claim}/billing`
    assert.deepInclude(read(key, { ...entry, v: 9, until: 7 })?.entry, { v: 9, host: "host-a" })
    assert.strictEqual(read(key, { ...entry, claim: "3" })?.offset, 3n)
    for (const malformed of [{ ...entry, claim: "-3" }, { ...entry, answer: { status: 99, body: "" } }, { v: 1 }, []])
      assert.isUndefined(read(key, malformed))
    assert.isUndefined(read(`request/${id}/${claim}/shipping`, entry))
    assert.isUndefined(read(`request/short/${claim}/billing`, entry))
  })
})
