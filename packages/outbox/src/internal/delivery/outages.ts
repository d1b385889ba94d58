/** The outages of listeners' destinations: which events wait, for how long, and what health shows of them. */
import type { EventEnvelope } from "../base/envelope.ts"
import { listenerKeyOf } from "./callListener.ts"
import type { DeliveryTools } from "./deliveryTools.ts"
import { type FailureOutcome, unavailableDelayMillis } from "./failureOutcome.ts"
import { OutageGates } from "./outageGates.ts"

export class Outages {
  readonly #tools: DeliveryTools
  readonly #gates = new OutageGates()

  constructor(tools: DeliveryTools) {
    this.#tools = tools
  }

  /** Undefined when the event may be delivered. Otherwise how long it waits for its destination, and why. */
  hold(event: EventEnvelope): { readonly delayMillis: number; readonly error: string } | undefined {
    return this.#gates.isAnyClosed ? this.#gates.admit(listenerKeyOf(event), this.#nowMillis()) : undefined
  }

  /** A delivery succeeded: the listener is well and its destination answers. */
  succeeded(event: EventEnvelope): void {
    const { monitor } = this.#tools.guard
    if (monitor.has("listener")) monitor.clear("listener", listenerKeyOf(event))
    if (this.#gates.isAnyClosed) this.#open(event)
  }

  /** A delivery failed. Returns how long a postponed event waits. Any other failure shows that the destination answers. */
  failed(event: EventEnvelope, outcome: FailureOutcome): number {
    if (outcome._tag !== "Postpone") {
      if (this.#gates.isAnyClosed) this.#open(event)
      return 0
    }
    return outcome.holds === "event"
      ? unavailableDelayMillis
      : this.#gates.close(listenerKeyOf(event), outcome.error, this.#nowMillis())
  }

  #open(event: EventEnvelope): void {
    const key = listenerKeyOf(event)
    if (this.#gates.open(key)) this.#tools.guard.monitor.clear("destination", key)
  }

  #nowMillis(): number {
    return Number(this.#tools.clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  }
}
