export { SchemaRegistry, UnusableSchema } from "@eventbus/schema-registry"
export * as JsonSchema from "./JsonSchema.ts"
