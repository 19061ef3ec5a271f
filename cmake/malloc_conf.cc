// jemalloc's options, which it finds by this name (jemalloc(3), TUNING): huge pages, because a plan
// reads a little of everything, and most of what it waited for were the tables of pages.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "thp:always";
}
