import { describe, expect, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { expectTypeOf } from "vitest"
import * as Serde from "../src/Serde.ts"
import * as TypeId from "../src/TypeId.ts"

const Email = Schema.Struct({ to: Schema.String })
const User = Schema.Struct({ id: Schema.Int })
const email = "com.extractor.unraveldocs.brokers.EmailMessage"
const user = "com.extractor.unraveldocs.brokers.UserMessage"
const messages = TypeId.serde({ [email]: Serde.json(Email), [user]: Serde.json(User) })

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const record = (...names: ReadonlyArray<string>): Serde.Source => ({ headers: names.map(TypeId.header) })
const refusal = (source: Serde.Source | undefined, serde: Serde.Any = messages) =>
  Result.match(serde.decode(json({ to: "ann" }), source), {
    onFailure: ({ detail }) => detail,
    onSuccess: () => expect.unreachable("was decoded")
  })

describe("TypeId.serde", () => {
  it("SER-07 the header chooses the type; the value comes with its name", () => {
    const decoded = Result.getOrThrow(messages.decode(json({ to: "ann" }), record(email)))
    expect(decoded).toEqual({ _tag: email, value: { to: "ann" } })
    expect(Result.getOrThrow(messages.decode(json({ id: 7 }), record(user)))).toEqual({ _tag: user, value: { id: 7 } })
    expectTypeOf(decoded).toEqualTypeOf<
      | { readonly _tag: typeof email; readonly value: typeof Email.Type }
      | { readonly _tag: typeof user; readonly value: typeof User.Type }
    >()
  })

  it("SER-07 a value is written as JSON, with the header that names its type", () => {
    const message = { _tag: user, value: { id: 7 } } as const
    expect(Result.getOrThrow(messages.encode(message))).toEqual(json({ id: 7 }))
    expect(messages.headers(message)).toEqual([TypeId.header(user)])
    expect(TypeId.header(user)).toEqual({ key: "__TypeId__", value: new TextEncoder().encode(user) })
  })

  it("SER-07 the last of repeated headers counts, as on the JVM", () => {
    expect(Result.getOrThrow(messages.decode(json({ id: 7 }), record(email, user)))._tag).toBe(user)
  })

  it("SER-07 a value that does not fit its type is a failure of that type", () => {
    const failure = Result.flip(messages.decode(json({ to: 7 }), record(email)))
    expect(Result.getOrThrow(failure)).toMatchObject({ path: '["to"]', serde: "json" })
  })

  it("SER-07 SEC-02 MSG-19 a name outside the allow-list is a failure that says header, name and allowed names", () => {
    const ofSeed = TypeId.serde({ [email]: Serde.json(Email) }, { trusted: ["com.extractor.unraveldocs.*"] })
    expect(refusal(record("com.evil.Runtime"), ofSeed)).toBe(
      "header __TypeId__ is 'com.evil.Runtime', which is not trusted; trusted is com.extractor.unraveldocs.*"
    )
    expect(refusal(record("com.extractor.unraveldocsevil.Email"), ofSeed)).toContain("is not trusted")
    expect(refusal(record("com.extractor.unraveldocs"), ofSeed)).toContain("is not trusted")
    expect(refusal(record("com.extractor.unraveldocs.Other"), ofSeed)).toBe(
      `header __TypeId__ is 'com.extractor.unraveldocs.Other', which has no serde; there is one for ${email}`
    )
  })

  it("SER-07 SEC-02 without an allow-list the names of the table are trusted, in whatever package, and no other", () => {
    const payments = TypeId.serde({ "pay.Payment": Serde.json(User) })
    expect(Result.getOrThrow(payments.decode(json({ id: 7 }), record("pay.Payment")))).toEqual({
      ...{ _tag: "pay.Payment", value: { id: 7 } }
    })
    expect(refusal(record("com.extractor.unraveldocs.Other"), payments)).toBe(
      "header __TypeId__ is 'com.extractor.unraveldocs.Other', which is not trusted; trusted is pay.Payment"
    )
  })

  it("SER-07 a missing name, and a value of a type without a serde, are failures", () => {
    const missing = `header __TypeId__ is missing; it must be one of ${email}, ${user}`
    expect(refusal({ headers: [] })).toBe(missing)
    expect(refusal({ headers: [{ key: "__TypeId__", value: null }] })).toBe(missing)
    expect(refusal(undefined)).toBe(missing)
    expect(Result.isFailure(messages.encode({ _tag: "Other", value: { id: 7 } } as never))).toBe(true)
  })

  it.each(["__proto__", "constructor", "toString", ""])("SEC-03 SER-07 the name '%s' matches no serde", (name) => {
    expect(refusal(record(name), TypeId.serde({ A: Serde.string }, { trusted: ["A", name] }))).toContain("has no serde")
  })

  it("SER-07 the program sets the allow-list of exact names and prefixes; a name outside it is not decoded although it has a serde", () => {
    const own = TypeId.serde(
      { "shop.Order": Serde.string, "shop.old.Order": Serde.string, Note: Serde.string },
      { trusted: ["shop.Order", "shop.old.*"] }
    )
    for (const name of ["shop.Order", "shop.old.Order"]) {
      expect(Result.isSuccess(own.decode(json("x"), record(name)))).toBe(true)
    }
    expect(refusal(record("Note"), own)).toContain("trusted is shop.Order, shop.old.*")
    expect(refusal({ headers: [] }, own)).toContain("one of shop.Order, shop.old.Order")
  })

  it("a long list of names is cut", () => {
    const names = Array.from({ length: 25 }, (_, index) => `t.T${index}`)
    const many = TypeId.serde(Object.fromEntries(names.map((name) => [name, Serde.string])), { trusted: ["t.*"] })
    expect(refusal({ headers: [] }, many)).toMatch(/t\.T19 and 5 more$/)
  })

  it("SER-09 a nullable type serde reads a tombstone, whatever its header says", () => {
    const nullable = Serde.nullable(messages)
    expect(Result.getOrThrow(nullable.decode(null, record("com.evil.Runtime")))).toBeNull()
    expect(nullable.headers?.(null)).toEqual([])
    expect(nullable.headers?.({ _tag: user, value: { id: 7 } })).toEqual([TypeId.header(user)])
    expect(Result.getOrThrow(Result.flip(messages.decode(null, record(email)))).detail).toContain("tombstone")
  })

  it("waits only for the preparation of the named type's serde", () => {
    const fetched = Effect.void
    const waiting = TypeId.serde(
      { A: { ...Serde.string, prepare: () => fetched }, B: Serde.string },
      { trusted: ["A", "B"] }
    )
    expect(waiting.prepare?.(json("x"), record("A"))).toBe(fetched)
    expect(waiting.prepare?.(json("x"), record("B"))).toBeUndefined()
    expect(waiting.prepare?.(json("x"), record("C"))).toBeUndefined()
    expect(messages.prepare).toBeUndefined()
    expect(Serde.nullable(waiting).prepare?.(json("x"), record("A"))).toBe(fetched)
    expect(Serde.nullable(waiting).prepare?.(null, record("A"))).toBeUndefined()
  })
})
