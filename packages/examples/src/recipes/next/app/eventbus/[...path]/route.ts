export { answer as GET, answer as POST, answer as DELETE } from "../../../service.ts"

/** Answered anew for each request. */
export const dynamic = "force-dynamic"
