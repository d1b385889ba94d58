#!/usr/bin/env node
// The index would load ten times as much.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Cli from "./Cli.ts"

const Manifest = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))

const version = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const manifest = yield* path.fromFileUrl(new URL("../package.json", import.meta.url))
  return (yield* Schema.decodeEffect(Manifest)(yield* files.readFileString(manifest))).version
})

NodeRuntime.runMain(Effect.provide(Effect.flatMap(Effect.orDie(version), Cli.run), NodeServices.layer), {
  disableErrorReporting: true,
  teardown: Cli.teardown
})
