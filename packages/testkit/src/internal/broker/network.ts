/**
 * The network between clients and the broker: connections, outages, and what happens to a request on its way.
 */
import { BrokerError } from "@eventbus/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Call, FaultDecision, FaultRuntime } from "./faultRuntime.ts"
import type { Kernel } from "./kernel.ts"

/** The connection of one client. */
export interface Connection {
  readonly clientId: string
  readonly kind: "consumer" | "producer" | "reader" | "admin"
  /** Closed for good: killed or dropped. */
  cut: boolean
  isolatedUntilMillis: number
  /** Called when the connection works again, and when it is dropped. */
  readonly onChange: (change: "restored" | "dropped") => void
}

export class Network {
  readonly connections = new Set<Connection>()
  private downUntilMillis = 0
  private coordinatorAwayUntilMillis = 0
  private readonly kernel: Kernel
  private readonly faults: FaultRuntime

  constructor(kernel: Kernel, faults: FaultRuntime) {
    this.kernel = kernel
    this.faults = faults
  }

  connect(clientId: string, kind: Connection["kind"], onChange: Connection["onChange"] = () => {}): Connection {
    const connection: Connection = { clientId, kind, cut: false, isolatedUntilMillis: 0, onChange }
    this.connections.add(connection)
    return connection
  }

  disconnect(connection: Connection): void {
    connection.cut = true
    this.connections.delete(connection)
  }

  get brokerDown(): boolean {
    return this.kernel.nowMillis() < this.downUntilMillis
  }

  get coordinatorAway(): boolean {
    return this.brokerDown || this.kernel.nowMillis() < this.coordinatorAwayUntilMillis
  }

  reaches(connection: Connection): boolean {
    return !connection.cut && !this.brokerDown && this.kernel.nowMillis() >= connection.isolatedUntilMillis
  }

  takeDown(duration: Duration.Input): void {
    this.downUntilMillis = Math.max(this.downUntilMillis, this.kernel.nowMillis() + Duration.toMillis(duration))
    this.restoreAt(this.downUntilMillis, () => [...this.connections])
  }

  moveCoordinator(duration: Duration.Input): void {
    this.coordinatorAwayUntilMillis = this.kernel.nowMillis() + Duration.toMillis(duration)
  }

  isolate(connection: Connection, duration: Duration.Input): void {
    connection.isolatedUntilMillis = this.kernel.nowMillis() + Duration.toMillis(duration)
    this.restoreAt(connection.isolatedUntilMillis, () => [connection])
  }

  /** Sends one request and returns the broker's answer. Fails with the broker's refusal, or with the reason why no answer came. */
  request<A>(
    connection: Connection,
    call: Call,
    handle: (decision: FaultDecision) => Effect.Effect<A, BrokerError.BrokerError>,
    timeoutMillis?: number
  ): Effect.Effect<A, BrokerError.BrokerError> {
    return Effect.flatten(this.exchange(connection, call, handle, timeoutMillis))
  }

  /**
   * Sends one request: faults apply, time passes, and `handle` runs at the broker in one step, unless the request gets lost.
   *
   * Succeeds with the answer, which may be a refusal. Fails when there is no answer, so that a client knows what it may retry.
   */
  exchange<A>(
    connection: Connection,
    call: Call,
    handle: (decision: FaultDecision) => Effect.Effect<A, BrokerError.BrokerError>,
    timeoutMillis = this.kernel.settings.requestTimeoutMillis
  ): Effect.Effect<Exit.Exit<A, BrokerError.BrokerError>, BrokerError.BrokerError> {
    return Effect.suspend(() => {
      const decision = this.faults.decide(call)
      const delayMillis = decision.delayMillis + this.kernel.settings.latencyMillis[call.operation]
      const waitedMillis = Math.min(delayMillis, timeoutMillis)
      const noAnswer = Effect.suspend(() =>
        Effect.fail(new BrokerError.RequestTimedOut({ operation: call.operation, millis: timeoutMillis }))
      ).pipe(Effect.delay(timeoutMillis - waitedMillis))
      const arrived = Effect.suspend(() => {
        if (decision.refusal?._tag === "Refuse") return Effect.succeed(Exit.fail(decision.refusal.error))
        if (decision.lost === "request") return noAnswer
        const blocked = this.obstacle(connection, call)
        if (blocked === "silence") return noAnswer
        if (blocked !== undefined) return Effect.fail(blocked)
        const answer = Effect.exit(handle(decision))
        if (decision.refusal !== undefined) return Effect.as(answer, Exit.fail(decision.refusal.error))
        return decision.lost === "response" || delayMillis >= timeoutMillis ? Effect.andThen(answer, noAnswer) : answer
      })
      return waitedMillis > 0 ? Effect.delay(arrived, waitedMillis) : arrived
    })
  }

  private obstacle(connection: Connection, call: Call): "silence" | BrokerError.BrokerError | undefined {
    if (connection.cut || this.kernel.nowMillis() < connection.isolatedUntilMillis) return "silence"
    if (this.brokerDown) {
      return new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "the broker is down" })
    }
    if (call.groupId !== undefined && call.operation !== "admin" && this.coordinatorAway) {
      return new BrokerError.CoordinatorUnavailable({ detail: `the coordinator of group '${call.groupId}' is moving` })
    }
    return undefined
  }

  private restoreAt(untilMillis: number, affected: () => ReadonlyArray<Connection>): void {
    this.kernel.after(untilMillis - this.kernel.nowMillis(), () => {
      for (const connection of affected()) if (this.reaches(connection)) connection.onChange("restored")
    })
  }
}
