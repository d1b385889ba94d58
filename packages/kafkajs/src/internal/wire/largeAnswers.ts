/**
 * kafkajs keeps the parts of an answer until all of them have come, and copies them into one buffer then. By that time a part of a large answer has left the
 * processor's cache, and it stays in memory beside its copy.
 */
import { connection, type KafkaConnection } from "./kafkajsInternals.ts"

/** Below it, an answer comes in one part or two. */
const largeBytes = 64 * 1024

/** Copies each part of a large answer to its place as soon as it comes. */
export const copyPartsAsTheyCome = (): void => {
  const processData = connection.prototype.processData
  connection.prototype.processData = function (bytes) {
    if (this.bytesNeeded <= largeBytes) return processData.call(this, bytes)
    const answer = beginOf(this)
    const taken = bytes.copy(answer, this.bytesBuffered)
    this.bytesBuffered += taken
    if (this.bytesBuffered < this.bytesNeeded) return
    this.chunks = []
    this.bytesBuffered = 0
    processData.call(this, answer)
    if (taken < bytes.length) this.processData(bytes.subarray(taken))
  }
}

/** The buffer of the answer that is coming: kafkajs's only chunk, which is as long as the whole answer. */
const beginOf = (self: KafkaConnection): Buffer => {
  const [begun] = self.chunks
  if (begun?.length === self.bytesNeeded) return begun
  const answer = Buffer.allocUnsafeSlow(self.bytesNeeded)
  let at = 0
  for (const chunk of self.chunks) at += chunk.copy(answer, at)
  self.chunks = [answer]
  return answer
}
