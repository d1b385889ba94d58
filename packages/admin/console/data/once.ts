/** Sends a change again when its answer got lost. */

/** How long it waits before each repeat, in milliseconds. */
const pausesMillis = [500, 1_500]

/** `randomUUID` is missing on pages that come without TLS from another host. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** All repeats have one key, so that the change happens once. */
export const once = async <A>(send: (key: string) => Promise<A>, pauses = pausesMillis): Promise<A> => {
  const key = newKey()
  for (const millis of pauses) {
    try {
      return await send(key)
    } catch {
      await pause(millis)
    }
  }
  return send(key)
}
