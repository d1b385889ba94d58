/** Sets the password of a SCRAM user while the cluster runs, by AlterUserScramCredentials (KIP-554), which kafkajs does not encode. */
import { pbkdf2Sync, randomBytes } from "node:crypto"
import { connect } from "node:net"
import { Effect } from "effect"

const apiKey = 51
const iterations = 4096
const mechanisms = [
  { code: 1, digest: "sha256", length: 32 },
  { code: 2, digest: "sha512", length: 64 }
] as const

const noTags = Buffer.from([0])
const int16 = (value: number) => Buffer.from([value >> 8, value & 0xff])
const int32 = (value: number) => Buffer.from([value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff])
/** Compact bytes or text: the length plus one, here always below 127, then the bytes. */
const compact = (bytes: Buffer) => Buffer.concat([Buffer.from([bytes.length + 1]), bytes])

const upsertion = (username: string, password: string, { code, digest, length }: (typeof mechanisms)[number]) => {
  const salt = randomBytes(16)
  const salted = pbkdf2Sync(password, salt, iterations, length, digest)
  const name = compact(Buffer.from(username))
  return Buffer.concat([name, Buffer.from([code]), int32(iterations), compact(salt), compact(salted), noTags])
}

const requestOf = (username: string, password: string, mechanism: (typeof mechanisms)[number]): Buffer => {
  const header = Buffer.concat([int16(apiKey), int16(0), int32(1), int16(-1 & 0xffff), noTags])
  // No deletions, one upsertion.
  const body = Buffer.concat([Buffer.from([1, 2]), upsertion(username, password, mechanism), noTags])
  return Buffer.concat([int32(header.length + body.length), header, body])
}

const ask = (address: string, request: Buffer): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const [host = "", port] = address.split(":")
    const socket = connect({ host, port: Number(port) }, () => socket.write(request))
    let answer = Buffer.alloc(0)
    socket.on("error", reject)
    socket.on("end", () => reject(new Error("the broker closed the connection")))
    socket.on("data", (bytes) => {
      answer = Buffer.concat([answer, bytes as Buffer])
      if (answer.length < 4 || answer.length < 4 + answer.readInt32BE(0)) return
      socket.destroy()
      resolve(answer)
    })
  })

/** The error code of the one result. It comes after length, correlation id, tags, throttle time, number of results and name. */
const errorCode = (answer: Buffer): number => {
  const name = 4 + 4 + 1 + 4 + 1
  return answer.readInt16BE(name + answer.readUInt8(name))
}

/** Sets it for SCRAM-SHA-256 and SCRAM-SHA-512, by the brokers' own listener. */
export const setScramPassword = (address: string, username: string, password: string): Effect.Effect<void> =>
  Effect.promise(async () => {
    // One request per mechanism: a request may name a user only once.
    for (const mechanism of mechanisms) {
      const code = errorCode(await ask(address, requestOf(username, password, mechanism)))
      if (code !== 0) throw new Error(`the password was not set: error ${code}`)
    }
  })
