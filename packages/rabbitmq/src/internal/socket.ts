/** The socket of a connection, which amqplib keeps to itself. */
import { Duplex } from "node:stream"
import type { ChannelModel } from "amqplib"

/** Undefined when amqplib keeps it elsewhere: then frames are written one by one, and a connection is closed by its goodbye alone. */
export const socketOf = (model: ChannelModel): Duplex | undefined => {
  const stream: unknown = Reflect.get(model.connection ?? {}, "stream")
  return stream instanceof Duplex ? stream : undefined
}

/**
 * Writes all frames of one turn of the event loop by one call of the system. amqplib makes one for each message, which costs more than everything else that a message needs.
 */
export class FramesTogether {
  readonly #socket: Duplex | undefined
  #isCorked = false

  constructor(model: ChannelModel) {
    this.#socket = socketOf(model)
  }

  /** Call it after a frame was given to amqplib. */
  hold(): void {
    const socket = this.#socket
    if (this.#isCorked || socket === undefined) return
    this.#isCorked = true
    socket.cork()
    // amqplib writes in the next `setImmediate`, which it asks for in the next tick: before this.
    process.nextTick(() =>
      setImmediate(() => {
        this.#isCorked = false
        socket.uncork()
      })
    )
  }
}
