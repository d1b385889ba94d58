/** The nodes of a cluster: their addresses, as the last metadata names them, and a connection to each that was needed. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Semaphore from "effect/Semaphore"
import { type ClientFailure, failure, Local } from "../../ClientFailure.ts"
import type { NodeClient, Transport } from "../../Transport.ts"
import type { Apis } from "../protocol/apis.ts"
import { makeBootstrap } from "./bootstrap.ts"
import { firstAnswer } from "./firstAnswer.ts"
import { addressOf, makeConnections } from "./nodeConnections.ts"
import type { SilentAddresses } from "./silentAddresses.ts"

type Metadata = Apis["Metadata"]["response"]

export interface Nodes {
  /** Asks the bootstrap addresses which nodes there are, and gives the id of the cluster. */
  readonly bootstrap: Effect.Effect<Metadata["clusterId"], ClientFailure>
  /** The connected node with this id. Fails for -1, which is how metadata names a missing leader, and for an id that the last metadata does not name. */
  readonly node: (nodeId: number) => Effect.Effect<NodeClient, ClientFailure>
  /** Whether the last metadata names the node. */
  readonly has: (nodeId: number) => boolean
  /**
   * The first answer to a request that every node can answer. More than one may get it. When no node answers, the bootstrap addresses are asked which
   * nodes there are. `except` is not asked.
   */
  readonly ask: <A>(
    request: (broker: NodeClient) => Effect.Effect<A, ClientFailure>,
    except?: NodeClient
  ) => Effect.Effect<A, ClientFailure>
  /** Notes when a node does not answer a request within a second, and when it does. */
  readonly watch: <A>(broker: NodeClient, request: Effect.Effect<A, ClientFailure>) => Effect.Effect<A, ClientFailure>
  /** Whether the node with this id has not answered lately. */
  readonly isSilent: (nodeId: number) => boolean
  /** Takes over the addresses of the nodes from metadata. */
  readonly learn: (brokers: Metadata["brokers"]) => Effect.Effect<void>
  /** Closes the connections that wait for no answer. */
  readonly close: () => Promise<void>
}

/** The sooner a node is likely to answer, the lower. A node that works on another request answers the next one after it. */
const rank = (broker: NodeClient, silent: SilentAddresses): number =>
  silent.has(addressOf(broker)) ? 3 : broker.isBusy() ? 2 : broker.isConnected() ? 0 : 1

/** Nodes in the order in which to ask them: at random among equals, so that the load is shared. */
const inOrder = (brokers: ReadonlyArray<NodeClient>, silent: SilentAddresses): ReadonlyArray<NodeClient> =>
  brokers
    .map((broker) => ({ broker, place: rank(broker, silent) + Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ broker }) => broker)

/** Knows no node until it is asked for one. */
export const makeNodes = (bootstrap: ReadonlyArray<string>, silent: SilentAddresses, network: Transport): Nodes => {
  const known = new Map<number, NodeClient>()
  /** The node that a bootstrap address led to, while metadata does not name that address. */
  let seed: NodeClient | undefined
  const connections = makeConnections()
  const { abandon, connect } = connections
  const askBootstrap = makeBootstrap(bootstrap, silent, network, connections)
  const oneLearns = Semaphore.makeUnsafe(1).withPermits(1)

  const learn = Effect.fnUntraced(function* (brokers: Metadata["brokers"]) {
    const former = new Set(known.values())
    for (const { nodeId, host, port } of brokers) {
      const address = `${host}:${port}`
      const current = known.get(nodeId)
      const same = [current, seed].find((broker) => broker !== undefined && addressOf(broker) === address)
      const broker = same ?? (yield* Effect.promise(() => network.open({ host, port })))
      if (broker === seed) seed = undefined
      known.set(nodeId, broker)
      former.delete(broker)
    }
    const ids = new Set(brokers.map(({ nodeId }) => nodeId))
    for (const id of known.keys()) if (!ids.has(id)) known.delete(id)
    for (const broker of former) broker.disconnect().catch(() => undefined)
  })

  const fromBootstrap = Effect.gen(function* () {
    const bootstrapped = yield* askBootstrap
    const { broker, brokers } = bootstrapped
    if (seed !== broker) {
      if (seed !== undefined) abandon(seed)
      if (!Array.from(known.values()).includes(broker)) seed = broker
      yield* oneLearns(learn(brokers))
    }
    return bootstrapped
  })

  const noting = <A>(broker: NodeClient, request: Effect.Effect<A, ClientFailure>) =>
    Effect.tap(request, () => silent.noteAnswer(addressOf(broker)))

  /** A node that works on another request answers this one late, and is not silent. */
  const watch = <A>(broker: NodeClient, request: Effect.Effect<A, ClientFailure>) =>
    broker.isBusy() ? request : silent.watch(addressOf(broker))(request)

  return {
    bootstrap: Effect.map(fromBootstrap, ({ clusterId }) => clusterId),
    node: (nodeId) => {
      const broker = known.get(nodeId)
      if (nodeId < 0) return Effect.fail(failure(Local.connection, "the partition has no leader at the moment"))
      if (broker === undefined) return Effect.fail(failure(Local.connection, `node ${nodeId} is not known`))
      return broker.isConnected() ? connect(broker) : silent.watch(addressOf(broker))(connect(broker))
    },
    has: (nodeId) => known.has(nodeId),
    ask: (request, except) =>
      Effect.suspend(() => {
        const others = [...known.values()].filter((broker) => broker !== except)
        const ofKnown = inOrder(others, silent).map((broker) => {
          const answer = noting(broker, Effect.flatMap(connect(broker), request))
          // The request is out, so its answer may also come when nobody waits for it any more.
          return watch(broker, Effect.flatMap(Effect.forkDetach(answer), Fiber.join))
        })
        return firstAnswer(
          except === undefined ? [...ofKnown, Effect.flatMap(fromBootstrap, ({ broker }) => request(broker))] : ofKnown
        )
      }),
    watch: (broker, request) => watch(broker, noting(broker, request)),
    isSilent: (nodeId) => {
      const broker = known.get(nodeId)
      return broker !== undefined && silent.has(addressOf(broker))
    },
    learn: (brokers) => oneLearns(learn(brokers)),
    close: async () => {
      const open = seed === undefined ? known.values() : [...known.values(), seed]
      await Promise.all(Array.from(open, (broker) => broker.disconnect()))
    }
  }
}
