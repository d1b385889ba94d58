/** The outages of listeners' destinations: which events wait, for how long, and what health shows of them. */
import type { EventEnvelope } from "../base/envelope.ts"
import { listenerKeyOf } from "./callListener.ts"
import type { DeliveryTools } from "./deliveryTools.ts"
import type { FailureOutcome } from "./failureOutcome.ts"
import { OutageGates } from "./outageGates.ts"
import { WaitingEvents } from "./waitingEvents.ts"

export class Outages {
  readonly #tools: DeliveryTools
  readonly #gates = new OutageGates()
  readonly #waiting = new WaitingEvents()
  /** The names that health shows for the destination of a listener whose gate is closed. */
  readonly #names = new Map<string, string>()

  constructor(tools: DeliveryTools) {
    this.#tools = tools
  }

  /** Undefined when the event may be delivered. Otherwise how long it waits for its destination, and why. */
  hold(event: EventEnvelope): { readonly delayMillis: number; readonly error: string } | undefined {
    if (!this.#gates.isAnyClosed) return undefined
    const key = listenerKeyOf(event)
    const held = this.#gates.admit(key, this.#nowMillis())
    if (held !== undefined) {
      const { clock, guard } = this.#tools
      guard.monitor.persists("destination", this.#names.get(key) ?? key, clock.currentTimeMillisUnsafe())
    }
    return held
  }

  /** A delivery succeeded: the listener is well and its destination answers. */
  succeeded(event: EventEnvelope): void {
    const { monitor } = this.#tools.guard
    if (monitor.has("listener")) monitor.clear("listener", listenerKeyOf(event))
    this.#answered(event)
  }

  /** A delivery failed. Returns how long a postponed event waits. Any other failure shows that the destination answers. */
  failed(event: EventEnvelope, outcome: FailureOutcome): number {
    if (outcome._tag !== "Postpone") {
      this.#answered(event)
      return 0
    }
    const key = listenerKeyOf(event)
    const name = outcome.destination ?? key
    if (outcome.holds === "event") return this.#waiting.wait(event.eventId, name, this.#nowMillis())
    const before = this.#names.get(key)
    if (before !== undefined && before !== name) this.#tools.guard.monitor.clear("destination", before)
    this.#names.set(key, name)
    return this.#gates.close(key, outcome.error, this.#nowMillis())
  }

  /** The destination of this event answers. It costs nothing while no destination is down. */
  #answered(event: EventEnvelope): void {
    const { monitor } = this.#tools.guard
    if (this.#waiting.isAnyWaiting) {
      const name = this.#waiting.answered(event.eventId)
      if (name !== undefined) monitor.clear("destination", name)
    }
    if (!this.#gates.isAnyClosed) return
    const key = listenerKeyOf(event)
    if (!this.#gates.open(key)) return
    monitor.clear("destination", this.#names.get(key) ?? key)
    this.#names.delete(key)
  }

  #nowMillis(): number {
    return Number(this.#tools.clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  }
}
