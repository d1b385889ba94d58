/** SCRAM by the examples of RFC 5802 and RFC 7677, and servers that do not prove themselves. */

import { createHash, createHmac, pbkdf2Sync } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { plain } from "../../src/internal/sasl/plain.ts"
import { type Hash, scram } from "../../src/internal/sasl/scram.ts"

const credentials = { username: "user", password: "pencil" }
const nonce = "rOprNGfwEbeRWgbNEkqO"
const serverFirst = `r=${nonce}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`
const serverFinal = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

const started = () => {
  const exchange = scram("sha256", credentials, nonce)
  return { exchange, first: exchange.start().toString() }
}

/** The exchange's error for the server's first message. */
const refusalOf = (first: string): string => {
  try {
    started().exchange.next(Buffer.from(first))
    return "accepted"
  } catch (error) {
    return (error as Error).message
  }
}

/** Plays the server, which knows the password, by the text of RFC 5802. */
const serve = (hash: Hash, first: string, { password }: { readonly password: string }) => {
  const bare = first.slice("n,,".length)
  const answer = `r=${bare.split("r=")[1]}server,s=${Buffer.from("salt").toString("base64")},i=4096`
  const hmac = (key: Buffer, text: string) => createHmac(hash, key).update(text).digest()
  const salted = pbkdf2Sync(password, "salt", 4_096, hash === "sha256" ? 32 : 64, hash)
  const check = (final: string) => {
    const at = final.lastIndexOf(",p=")
    const exchanged = `${bare},${answer},${final.slice(0, at)}`
    const storedKey = createHash(hash).update(hmac(salted, "Client Key")).digest()
    const proof = Buffer.from(final.slice(at + 3), "base64")
    const signature = hmac(storedKey, exchanged)
    const clientKey = Buffer.from(proof.map((byte, index) => byte ^ signature[index]!))
    const isProved = createHash(hash).update(clientKey).digest().equals(storedKey)
    return { isProved, final: `v=${hmac(hmac(salted, "Server Key"), exchanged).toString("base64")}` }
  }
  return { answer, check }
}

describe("SCRAM", () => {
  it("sends the messages of RFC 7677, and takes the server's proof", () => {
    const { exchange, first } = started()
    assert.strictEqual(first, `n,,n=user,r=${nonce}`)
    assert.strictEqual(
      exchange.next(Buffer.from(serverFirst))?.toString(),
      `c=biws,r=${nonce}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=`
    )
    assert.isUndefined(exchange.next(Buffer.from(serverFinal)))
  })

  it.each(["sha256", "sha512"] as const)("proves a password by %s to a server, which proves itself", (hash) => {
    const user = { username: "a=b,c", password: "p,=ä" }
    const exchange = scram(hash, user)
    const first = exchange.start().toString()
    assert.include(first, "n=a=3Db=2Cc,")
    const server = serve(hash, first, user)
    const { final, isProved } = server.check(exchange.next(Buffer.from(server.answer))!.toString())
    assert.isTrue(isProved)
    assert.isUndefined(exchange.next(Buffer.from(final)))
  })

  it.each([
    ["v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", /did not prove/],
    ["v=", /did not prove/],
    ["", /did not prove/],
    ["e=invalid-proof", /refused: invalid-proof/]
  ])("refuses the server's final message %j", (final, error) => {
    const { exchange } = started()
    exchange.next(Buffer.from(serverFirst))
    assert.throws(() => exchange.next(Buffer.from(final)), error)
  })

  it.each([
    [serverFirst.replace(nonce, "anotherNonce"), /nonce of another/],
    [serverFirst.replace(/r=[^,]*/, `r=${nonce}`), /nonce of another/],
    [serverFirst.replace(/s=[^,]*/, "s="), /no salt/],
    [serverFirst.replace("i=4096", "i=4095"), /4096 to 131072/],
    [serverFirst.replace("i=4096", "i=999999999"), /4096 to 131072/],
    [serverFirst.replace("i=4096", "i=many"), /4096 to 131072/],
    [serverFirst.replace(",i=4096", ""), /4096 to 131072/],
    [`m=more,${serverFirst}`, /extension/],
    ["e=unknown-user", /refused: unknown-user/],
    ["", /nonce of another/]
  ])("refuses the server's first message %j", (first, error) => {
    assert.match(refusalOf(first), error)
  })

  it("survives any first message with an error of its own", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (garbage) => {
        assert.match(refusalOf(garbage), /^the broker /)
      })
    )
  })
})

describe("PLAIN", () => {
  it("sends the user and the password in one message", () => {
    const exchange = plain(credentials)
    assert.strictEqual(exchange.start().toString(), "\0user\0pencil")
    assert.isUndefined(exchange.next(Buffer.alloc(0)))
  })
})
