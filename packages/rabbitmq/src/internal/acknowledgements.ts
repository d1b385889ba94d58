/**
 * The acknowledgements of one channel. Those of one turn of the event loop go out together: everything up to a message by one frame, later messages by a frame each.
 */
import type { Channel, Message } from "amqplib"

/** Acknowledges what is settled. RabbitMQ numbers the deliveries of a channel from 1 (delivery tags). */
export class Acknowledgements {
  readonly #channel: Channel
  /** Everything below is settled. */
  #next = 1
  /** Everything up to here is acknowledged. */
  #acknowledged = 0
  /** Settled tags from `#next` on. */
  readonly #ahead = new Set<number>()
  /** Tags above `#acknowledged` that are acknowledged by a frame of their own. */
  readonly #single = new Set<number>()
  /** Tags that are settled since the last flush, and were not `#next` then. */
  #recent: Array<number> = []
  #isScheduled = false

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /** Acknowledges a delivery with the next flush. */
  settle(tag: number): void {
    if (!this.#advance(tag)) this.#recent.push(tag)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.flush())
  }

  /** Counts a delivery as settled that was rejected by a frame of its own. */
  rejected(tag: number): void {
    this.#single.add(tag)
    this.#advance(tag)
  }

  /** Sends what is settled now. A channel that is closed takes nothing: its messages come again. */
  flush(): void {
    this.#isScheduled = false
    try {
      this.#flush()
    } catch {
      // amqplib throws for a closed channel, and for nothing else.
    }
  }

  /** Whether everything up to the tag is settled now. */
  #advance(tag: number): boolean {
    if (tag !== this.#next) {
      this.#ahead.add(tag)
      return false
    }
    this.#next++
    while (this.#ahead.delete(this.#next)) this.#next++
    return true
  }

  #flush(): void {
    // RabbitMQ closes the channel when a frame for many messages names one that is acknowledged already.
    let last = this.#next - 1
    while (last > this.#acknowledged && this.#single.has(last)) last--
    if (last > this.#acknowledged) this.#channel.ack(delivery(last), true)
    for (let tag = this.#acknowledged + 1; this.#single.size > 0 && tag < this.#next; tag++) this.#single.delete(tag)
    this.#acknowledged = this.#next - 1
    const recent = this.#recent
    if (recent.length === 0) return
    this.#recent = []
    for (const tag of recent) {
      if (tag <= this.#acknowledged) continue
      this.#channel.ack(delivery(tag))
      this.#single.add(tag)
    }
  }
}

/** amqplib reads the tag of a message, and nothing else. */
const delivery = (deliveryTag: number): Message => ({ fields: { deliveryTag } }) as Message
