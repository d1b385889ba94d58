/** A member of the classic protocol whose group has moved on without it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Cluster } from "../../src/internal/connection/cluster.ts"
import { makeClassicMembership } from "../../src/internal/group/classicMembership.ts"
import { decodeMember, encodeAssignment } from "../../src/internal/group/memberProtocol.ts"
import { Ownership } from "../../src/internal/group/ownership.ts"
import { Reader } from "../../src/internal/protocol/reader.ts"
import type { NodeClient, Request } from "../../src/Transport.ts"
import * as OneNode from "../oneNode.ts"

const partition = { topic: "t", partition: 0 }

const memberAssignment = encodeAssignment(
  { partitions: [partition], incomplete: false, hasEager: false, byUnits: false },
  { readsUserData: false }
)

/** A coordinator whose leader is another member. `refusal`: its answer to the first heartbeat. */
class Coordinator implements NodeClient {
  readonly host = "localhost"
  readonly port = 9092
  /** The member id of each join, and how many partitions it claims. */
  readonly joins: Array<readonly [memberId: string, owned: number]> = []
  #refusal: number

  constructor(refusal: number) {
    this.#refusal = refusal
  }

  connect = async () => {}
  disconnect = async () => {}
  isConnected = () => true
  isBusy = () => false
  closeAtOnce = () => {}
  versionsOf = () => ({ min: 0, max: 5 })
  features = async () => new Map()

  send = async <A>({ apiName, encode }: Request<A>): Promise<A> => {
    if (apiName === "SyncGroup") return { errorCode: 0, memberAssignment } as A
    if (apiName === "JoinGroup") return this.#join(new Reader(encode().bytes)) as A
    const errorCode = this.#refusal
    this.#refusal = 0
    return { errorCode } as A
  }

  #join(reader: Reader) {
    reader.string()
    reader.skip(4 + 4)
    const memberId = reader.string()
    reader.nullableString()
    reader.string()
    const [owned = 0] = reader.array(() => {
      reader.string()
      return decodeMember("member", reader.bytes())?.owned.length ?? -1
    })
    this.joins.push([memberId, owned])
    const generationId = this.joins.length
    return { errorCode: 0, generationId, groupProtocol: "p", leaderId: "leader", memberId: "member", members: [] }
  }
}

/** Joins, is refused once, and joins again; a member that `stops` meanwhile may not join anew, and has half a second for it. */
const afterRefusal = Effect.fnUntraced(function* (errorCode: number, { stops } = { stops: false }) {
  const coordinator = new Coordinator(errorCode)
  const cluster: Cluster = {
    ...OneNode.cluster().self,
    coordinator: () => Effect.succeed(coordinator),
    whileCoordinator: (_type, _key, _node, request) => request
  }
  const ownership = new Ownership()
  let lost = 0
  const membership = makeClassicMembership(
    cluster,
    {
      ...{ groupId: "g", groupInstanceId: null, topics: ["t"], copartitionedTopics: [] },
      ...{ partitionAssignmentStrategy: ["eventbus-cooperative-sticky"] },
      ...{ sessionTimeoutMillis: 45_000, rebalanceTimeoutMillis: 60_000, heartbeatIntervalMillis: 10 },
      mayJoin: () => !stops || coordinator.joins.length === 0
    },
    ownership,
    "",
    {
      assigned: (generation) => void ownership.assign(generation, [partition]),
      lost: () => {
        lost++
        ownership.clear()
      },
      giveUp: Effect.void,
      topicIds: Effect.succeed(new Map())
    }
  )
  const joinedAgain = Effect.suspend(() => Effect.succeed(coordinator.joins.length > 1))
  const awaitJoin = Effect.repeat(Effect.delay(joinedAgain, "5 millis"), { until: (is) => is })
  yield* Effect.timeoutOption(Effect.raceFirst(membership.run, awaitJoin), "500 millis")
  return { joins: coordinator.joins, lost }
})

describe("a member of the classic protocol", () => {
  it.live(
    "joins again under its id, with its partitions, where the group has another generation (ILLEGAL_GENERATION)",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* afterRefusal(22), {
          joins: [
            ["", 0],
            ["member", 1]
          ],
          lost: 0
        })
      })
  )

  it.live("joins as a new member, without partitions, where the group does not know it (UNKNOWN_MEMBER_ID)", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* afterRefusal(25), {
        joins: [
          ["", 0],
          ["", 0]
        ],
        lost: 1
      })
    })
  )

  it.live("ruling 81: a member that stops joins the next generations under its id, and never as a new member", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* afterRefusal(22, { stops: true })).joins, [
        ["", 0],
        ["member", 1]
      ])
      assert.deepStrictEqual(yield* afterRefusal(25, { stops: true }), { joins: [["", 0]], lost: 1 })
    })
  )
})
