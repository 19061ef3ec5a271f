// The keys of the kind Service, and of what it lists by name: versions, shapes, hours.
#include "config/tenancy/kinds.h"

namespace gantry::tenancy {

std::vector<Field> fields_of(ServiceShape& s) {
  return {{"cpus", &s.cpus, Form::plain, "Cores of a replica; 1."},
          {"memory", &s.memory, Form::bytes, "Its memory; the partition's default unless given."},
          {"gpus", &s.gpus, Form::plain, "Whole GPUs, or slices with `gpu_slice`; 0."},
          {"gpu_slice", &s.gpu_slice, Form::plain, "A MIG profile: `1g.10gb`."},
          {"gpu_share", &s.gpu_share, Form::plain,
           "Thousandths of one GPU or slice, instead of `gpus`: 1 to 999."},
          {"gpu_models", &s.gpu_models, Form::models, "Models that will do; all unless given."},
          {"service_time", &s.service_time, Form::plain,
           "Response time of one request on an idle replica; measured unless given."}};
}

std::vector<Field> fields_of(ServiceVersion& v) {
  return {{"weight", &v.weight, Form::plain,
           "Its part of the requests, beside the other versions; 100. With 0 it has none, and no "
           "replicas."},
          {"command", &v.command, Form::plain,
           "What a replica runs, for /bin/sh. Its server listens on `$PORT`."},
          {"image", &v.image, Form::plain, "Image of its container; the host's view unless given."},
          {"directory", &v.directory, Form::plain, "Where it starts, an absolute path."},
          {"environment", &v.environment, Form::plain, "Variables."},
          {"secrets", &v.secrets, Form::words, "Secrets of the tenant, each a file of its name."},
          {"datasets", &v.datasets, Form::plain, "Datasets; with `:rw` to write to them."},
          {"shapes", &v.shapes, Form::plain,
           "What a replica gets of a node, by name: one, or a ladder from the smallest on. A "
           "larger one is taken where one replica alone cannot keep the promise. Keys: `cpus`, "
           "`memory`, `gpus`, `gpu_slice`, `gpu_share`, `gpu_models`, `service_time`."}};
}

std::vector<Field> fields_of(ScaleHours& h) {
  return {{"days", &h.days, Form::words, "On which they begin: `mon` to `sun`; every day."},
          {"from", &h.from, Form::plain, "`08:00`, in the cluster's time zone."},
          {"until", &h.until, Form::plain, "`18:00`; not after `from`: on the next day."},
          {"least", &h.least, Form::plain, "Replicas at least."}};
}

namespace {

void add_probe(std::vector<Field>& out, ServiceProbe& p, bool live) {
  const auto key = [&](std::string_view ready_key, std::string_view live_key) {
    return live ? live_key : ready_key;
  };
  out.push_back({key("ready.path", "live.path"), &p.path, Form::plain,
                 live ? "Path of a GET that a living replica answers with 2xx or 3xx; one that "
                        "does not is replaced. No such probe unless given."
                      : "Path of a GET that a replica which can take requests answers with 2xx or "
                        "3xx. A connection is enough unless given."});
  out.push_back({key("ready.interval", "live.interval"), &p.interval, Form::plain,
                 "Between two probes; 2s. While a replica starts, gates ask more often."});
  out.push_back({key("ready.timeout", "live.timeout"), &p.timeout, Form::plain, "Of one; 1s."});
  out.push_back({key("ready.failures", "live.failures"), &p.failures, Form::plain,
                 "In a row, until it counts as failed; 3."});
}

void add_route(std::vector<Field>& out, ServiceRoute& r) {
  out.push_back(
      {"hosts", &r.hosts, Form::plain,
       "Names under which clients ask for it (the Host header); `NAME.TENANT` unless given."});
  out.push_back(
      {"path", &r.path, Form::plain, "What paths of its requests begin with; `/` unless given."});
  out.push_back({"access", &r.access, Form::plain,
                 "Who may ask: `tenant` (tokens of its tenant and of `callers`), `tokens` (any "
                 "token of this cluster) or `open` (everybody who reaches a gate); tenant."});
  out.push_back({"callers", &r.callers, Form::words, "Further tenants whose tokens are taken."});
  out.push_back({"balance", &r.balance, Form::plain,
                 "`round-robin`, `least-loaded`, `latency` (more to replicas that answer faster) "
                 "or `key` (requests with the same value of `key_header` go to one replica, up to "
                 "its share and a quarter); least-loaded."});
  out.push_back({"key_header", &r.key_header, Form::plain, "Name of a header, for balance `key`."});
  out.push_back(
      {"concurrency", &r.concurrency, Form::plain,
       "Requests in one replica at a time; more wait in the gate. No limit unless given."});
  out.push_back({"queue", &r.queue, Form::plain,
                 "Requests that may wait in a gate; further ones get 429. 1000."});
  out.push_back({"wait", &r.wait, Form::plain,
                 "How long one may wait there until it gets 429; the target unless given."});
  out.push_back({"requests", &r.requests, Form::plain,
                 "A second, of each calling tenant at each gate; further ones get 429. No limit "
                 "unless given."});
  out.push_back({"repeat", &r.repeat, Form::plain,
                 "Whether a request that is lost with its replica is sent to another one, once; "
                 "only for requests that may come twice. false."});
  add_probe(out, r.ready, false);
  add_probe(out, r.live, true);
}

void add_scale(std::vector<Field>& out, ServiceScale& s) {
  out.push_back(
      {"scale.least", &s.least, Form::plain, "Replicas at least; 1. 0: none while idle."});
  out.push_back({"scale.most", &s.most, Form::plain, "Replicas at most; 1."});
  out.push_back({"scale.by", &s.by, Form::plain,
                 "`promise` (the fewest with which the promise is kept, by Erlang C), "
                 "`concurrency` or `rate`; the largest answer holds. promise."});
  out.push_back({"scale.concurrency", &s.target_concurrency, Form::plain,
                 "Requests in one replica at a time, for `by: concurrency`."});
  out.push_back({"scale.rate", &s.target_rate, Form::plain,
                 "Requests a second in one replica, for `by: rate`."});
  out.push_back(
      {"scale.idle", &s.idle, Form::plain,
       "After this time without a request the service has no replicas, with `least: 0`; 5m."});
  out.push_back({"scale.down_after", &s.down_after, Form::plain,
                 "Replicas leave when fewer were enough for so long; 1m."});
  out.push_back({"scale.forecast", &s.forecast, Form::plain,
                 "Whether the same minutes of earlier days bring replicas in time; false."});
  out.push_back({"scale.spare_node", &s.spare_node, Form::plain,
                 "Whether the promise is to hold without any one of its nodes; false."});
  out.push_back({"scale.hours", &s.hours, Form::plain,
                 "Replicas at certain hours, by name: `days`, `from`, `until`, `least`."});
  out.push_back(
      {"scale.budget", &s.budget, Form::sum,
       "What its replicas may cost an hour, at the prices of now; no limit unless given."});
}

}  // namespace

std::vector<Field> fields_of(Service& s) {
  std::vector<Field> out = {
      {"name", &s.name, Form::word, "Of the service."},
      {"description", &s.description, Form::plain, "For people."},
      {"tenant", &s.tenant, Form::word, "Who pays for it, and whose admins may change it."},
      {"project", &s.project, Form::word, "Of the tenant; the tenant itself unless given."},
      {"partition", &s.partition, Form::plain, "Of its replicas; the tenant's queue unless given."},
      {"priority_class", &s.priority_class, Form::word, "Of its replicas, as of any job."},
      {"port", &s.port, Form::plain,
       "On which its server listens on 127.0.0.1 in the job, `$PORT`; 8000."},
      {"promise.target", &s.target, Form::plain, "Response time that is promised: `100ms`."},
      {"promise.percentile", &s.percentile, Form::plain,
       "Percent of the requests that are to be answered within it: 1 to 99; 95."},
      {"startup", &s.startup, Form::plain,
       "From a replica's start to its first answer at most; then it is replaced. 1m."},
      {"drain", &s.drain, Form::plain,
       "What a replica that leaves has to answer what it began; 30s."},
      {"sharing", &s.sharing, Form::plain,
       "`alone` (no replica has a part of a GPU beside another job) or `tenant` (one with "
       "`gpu_share` shares the device with jobs of its tenant, never of another); tenant."}};
  add_route(out, s.route);
  out.push_back({"versions", &s.versions, Form::plain,
                 "What replicas run, by name: `weight`, `command`, `image`, `directory`, "
                 "`environment`, `secrets`, `datasets`, `shapes`."});
  add_scale(out, s.scale);
  out.push_back({"rollout.kind", &s.rollout.kind, Form::plain,
                 "How a changed version comes: `rolling`, `canary` or `blue-green`; rolling."});
  out.push_back({"rollout.step", &s.rollout.step, Form::plain,
                 "For a canary: how many percent of the requests are added in each step; 10."});
  out.push_back({"rollout.pause", &s.rollout.pause, Form::plain,
                 "For a canary: the pause between two steps. For blue-green: how long the old "
                 "replicas stay. 1m."});
  out.push_back(
      {"rollout.most_errors", &s.rollout.most_errors, Form::plain,
       "Thousandths of the new replicas' requests that may fail; above, it goes back. 10."});
  out.push_back(
      {"rollout.watch_target", &s.rollout.watch_target, Form::plain,
       "Whether it goes back if the new replicas break the promise that the old ones keep; true."});
  return out;
}

}  // namespace gantry::tenancy
