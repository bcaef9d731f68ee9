"""Files and objects that change, are missing or are wrong while jobs use them."""
import glob
import json
import os
import shutil
import signal
import subprocess

from cluster_jobs import (POOL, ROWS, VICTIM, condition, job, limit_trainers, samples, slow_down, wait_for,
                          write_data)
from measure import Row


def own_folder(folder, name):
    path = os.path.join(folder, name)
    os.mkdir(path)
    return path


def conditions(cluster, name):
    return cluster.job(name).get("status", {}).get("conditions", [])


def said(cluster, name, *words):
    """The first message of a condition or Event of the job that has all the words."""
    found = [each.get("message", "") for each in conditions(cluster, name)]
    events = cluster.get("events")["items"]
    found += [each.get("message", "") for each in events if each["involvedObject"]["name"].startswith(name)]
    return next((message for message in found if all(word in message for word in words)), None)


def logged(cluster, name, *words):
    """The first line with all the words in the logs of the job's pods, deleted ones included."""
    for path in glob.glob(os.path.join(cluster.run, "node", "pods", f"default_{name}-*", "logs", "**"), recursive=True):
        if not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if all(word in line for word in words):
                    return json.loads(line[line.index("{"):])["msg"] if '"msg"' in line else line.strip()
    return None


def delete(cluster, name):
    cluster.kubectl("delete", "trainingjob", name, "--wait=false")


def fifo(cluster, folder):
    mine = own_folder(folder, "fifo")
    os.mkfifo(os.path.join(mine, "train.csv"))
    cluster.apply(job("fifo", mine, 1))
    message = wait_for("the FIFO is refused", lambda: said(cluster, "fifo", "regular file"))
    yield Row("a FIFO as data", message, True)
    delete(cluster, "fifo")


def price(cluster, _):
    pool = json.loads(json.dumps(POOL))
    pool["metadata"]["name"] = "expensive"
    for value in ("1e308", "9" * 309, "-1", "NaN", "Infinity"):
        pool["spec"]["price"] = {"usdPerUnitHour": value}
        try:
            cluster.apply(pool)
            yield Row(f"a pool for {value[:9]} USD/h", "accepted", False)
            cluster.kubectl("delete", "resourcepool", "expensive", "--wait=false")
        except AssertionError as refusal:
            yield Row(f"a pool for {value[:9]} USD/h", str(refusal).split(":", 1)[1].strip()[:160], True)


def name(cluster, folder):
    mine = own_folder(folder, "taken")
    write_data(os.path.join(mine, "train.csv"))
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taken-token", "namespace": "default"},
                   "stringData": {"token": "known to another user"}})
    cluster.apply(job("taken", mine, 2))
    wait_for("the job is complete", lambda: cluster.phase("taken") == "Complete")
    cluster.kubectl("delete", "secret", "taken-token")
    names = cluster.kubectl("get", "secrets", "-o", "name")
    yield Row("a Secret of the job's name", "the job uses another, whose name nobody can guess", "/taken-token-" in names)


def kill_a_trainer(cluster, name):
    pod = wait_for("a trainer", lambda: cluster.pods(name, "trainer"))[0]
    os.kill(wait_for("its process", lambda: cluster.process_of(pod)), signal.SIGKILL)


def changed_data(cluster, folder):
    """The rows are reversed while the job trains, and a trainer dies: its replacement reads another file."""
    mine = own_folder(folder, "moved")
    path = os.path.join(mine, "train.csv")
    write_data(path)
    epochs = 32
    cluster.apply(job("moved", mine, epochs))
    slow_down(cluster, "moved")
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    os.rename(path, path + ".right")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(reversed(lines))
    kill_a_trainer(cluster, "moved")
    sentence = wait_for("the changed file is refused", lambda: logged(cluster, "moved", "the training data has changed", "digest"))
    os.rename(path + ".right", path)
    limit_trainers(cluster, "moved", "-")
    wait_for("the job is complete", lambda: cluster.phase("moved") == "Complete")
    trained = samples(cluster, "moved")
    yield Row("a data file changes and a trainer dies", f"{sentence}; {trained} samples trained",
              trained == epochs * ROWS)


def checkpoints(cluster, name):
    """The folders of the job's checkpoints, the newest first."""
    return sorted(glob.glob(os.path.join(cluster.run, "node", "claims", "default", "checkpoints-" + name, "*", "step-*")),
                  reverse=True)


def suspend(cluster, name, value):
    cluster.kubectl("patch", "trainingjob", name, "--type=merge", "-p",
                    json.dumps({"spec": {"runPolicy": {"suspend": value}}}))


def exchanged_checkpoints(cluster, folder):
    """Files of the newest checkpoints of two jobs are exchanged while both are suspended."""
    mine = own_folder(folder, "exchanged")
    write_data(os.path.join(mine, "train.csv"))
    names = ("left", "right")
    epochs = 48
    for each in names:
        cluster.apply(job(each, mine, epochs))
    for each in names:
        slow_down(cluster, each)
    for each in names:
        wait_for(f"{each} has checkpoints", lambda each=each: len(checkpoints(cluster, each)) >= 2)
        suspend(cluster, each, True)
    for each in names:
        wait_for(f"{each} is suspended", lambda each=each: cluster.phase(each) == "Suspended")
    left, right = (checkpoints(cluster, each)[0] for each in names)
    files = sorted(set(os.listdir(left)) - {"manifest.json"})
    other = sorted(set(os.listdir(right)) - {"manifest.json"})
    for ours, theirs in zip(files, other):
        if ours.split("-")[0] != theirs.split("-")[0]:
            continue
        shutil.move(os.path.join(left, ours), os.path.join(left, "kept"))
        shutil.copy(os.path.join(right, theirs), os.path.join(left, ours))
        shutil.copy(os.path.join(left, "kept"), os.path.join(right, theirs))
        os.remove(os.path.join(left, "kept"))
    for each in names:
        suspend(cluster, each, False)
    for each in names:
        sentence = wait_for(f"{each} refuses the files", lambda each=each: logged(cluster, each, "skipped a checkpoint", "was written by the job"))
        wait_for(f"{each} is complete", lambda each=each: cluster.phase(each) == "Complete")
        trained = samples(cluster, each)
        yield Row(f"checkpoint files of two jobs are exchanged: {each}", f"{sentence}; {trained} samples trained",
                  trained == epochs * ROWS)


def full_volume(cluster, folder):
    """The checkpoint volume is full for a while."""
    if os.geteuid() != 0:
        yield Row("a full checkpoint volume", "only root can mount the small file system that it needs", True, made=False)
        return
    mine = own_folder(folder, "full")
    write_data(os.path.join(mine, "train.csv"))
    volume = os.path.join(cluster.run, "node", "claims", "default", "checkpoints-full")
    os.makedirs(volume)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", volume], check=True)
    try:
        epochs = 64
        cluster.apply(job("full", mine, epochs))
        slow_down(cluster, "full")
        wait_for("a checkpoint", lambda: checkpoints(cluster, "full"))
        ballast = os.path.join(volume, "ballast")
        with open(ballast, "wb", buffering=0) as file:
            try:
                while file.write(b"\0" * 4096):
                    pass
            except OSError:
                pass  # the volume is full
        message = wait_for("CheckpointFailing", lambda: condition(cluster, "full", "CheckpointFailing").get(
            "status") == "True" and condition(cluster, "full", "CheckpointFailing")["message"])
        before = samples(cluster, "full")
        wait_for("it trains on", lambda: samples(cluster, "full") > before)
        os.remove(ballast)
        wait_for("checkpoints work again",
                 lambda: condition(cluster, "full", "CheckpointFailing").get("status") == "False")
        limit_trainers(cluster, "full", "-")
        wait_for("the job is complete", lambda: cluster.phase("full") == "Complete")
        restarts = cluster.job("full")["status"].get("restarts", 0)
        yield Row("a full checkpoint volume", f"{message}; {restarts} restarts",
                  restarts == 0 and samples(cluster, "full") == epochs * ROWS)
    finally:
        subprocess.run(["umount", "-l", volume], check=False)


def written(cluster, name):
    return cluster.get("configmaps", name)


def rewrite(cluster, name, edit):
    """Replaces the data of a ConfigMap, as an editor of the namespace may."""
    data = {key: edit(text) for key, text in written(cluster, name)["data"].items()}
    cluster.kubectl("patch", "configmap", name, "--type=merge", "--patch", json.dumps({"data": data}))


def edited_records(cluster, folder):
    """An editor of ConfigMaps moves a plan into a pool of another namespace, takes the signature of another record, and makes a
    profile say that the pool is useless.
    """
    mine = own_folder(folder, "edited")
    write_data(os.path.join(mine, "train.csv"))
    reserved = json.loads(json.dumps(POOL))
    reserved["metadata"]["name"] = "reserved"
    reserved["spec"]["namespaces"] = ["payroll"]
    cluster.apply(reserved, job("edited", mine, 400))
    slow_down(cluster, "edited")
    genuine = written(cluster, "edited-plan")
    signature = written(cluster, VICTIM + "-plan")["metadata"]["annotations"]["medley.dev/signature"]
    for what, annotations in (("", {}), (" with the signature of another job's plan", {"medley.dev/signature": signature})):
        if annotations:
            cluster.kubectl("annotate", "--overwrite", "configmap", "edited-plan", f"medley.dev/signature={signature}")
        rewrite(cluster, "edited-plan", lambda text: text.replace("local", "reserved"))
        wait_for("the plan is the operator's again",
                 lambda: "reserved" not in json.dumps(written(cluster, "edited-plan")["data"]))
        message = wait_for("the refusal is reported", lambda: said(cluster, "edited", "edited-plan", "another client"))
        pods = cluster.get("pods")["items"]
        moved = [pod["metadata"]["name"] for pod in pods if pod["metadata"].get("labels", {}).get("medley.dev/pool") == "reserved"]
        used = cluster.get("resourcepools", "reserved").get("status", {}).get("units", {})
        again = written(cluster, "edited-plan")["data"].keys() == genuine["data"].keys()
        yield Row(f"a plan edited into a pool of another namespace{what}", f"{message}; {len(moved)} pods, {used.get('used', 0)} units there",
                  not moved and not used.get("used", 0) and again)
    profiles = [each["metadata"]["name"] for each in cluster.get("configmaps")["items"]
                if each["metadata"]["name"].startswith("medley-profile-")]
    for profile in profiles:
        rewrite(cluster, profile, lambda text: text.replace("0.", "9999."))
    cluster.apply(job("reads-profile", mine, 1))
    # The Event is about one of the jobs that can use the profile.
    message = wait_for("the profile is refused", lambda: next(filter(None, (
        said(cluster, each, "stored profile", "another client") for each in (VICTIM, "edited", "reads-profile"))), None))
    wait_for("the job is complete", lambda: cluster.phase("reads-profile") == "Complete")
    left = [profile for profile in profiles if "9999." in json.dumps(written(cluster, profile)["data"])]
    yield Row("edited profiles, and a job that needs them", f"{message}; {len(profiles)} edited, {len(left)} left",
              bool(profiles) and not left)
    delete(cluster, "edited")
    delete(cluster, "reads-profile")
    cluster.kubectl("delete", "resourcepool", "reserved", "--wait=false")


def units_used(cluster):
    pool = cluster.get("resourcepools", POOL["metadata"]["name"])
    return pool.get("status", {}).get("units", {}).get("used", 0)


def units_of_others(cluster, name):
    """Members of other jobs in the pool that have not ended."""
    pods = cluster.get("pods", labels=f"medley.dev/pool={POOL['metadata']['name']},medley.dev/job-name!={name}")["items"]
    return sum(pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") for pod in pods)


def copied_pods(cluster, folder):
    """Another user copies the pods of a job, and creates them again once the job has deleted its own: with the operator's signatures,
    under their names, where no scheduler places them and a finalizer keeps them.
    """
    mine = own_folder(folder, "copied")
    write_data(os.path.join(mine, "train.csv"))
    epochs = 24
    cluster.apply(job("copied", mine, epochs))
    slow_down(cluster, "copied")
    pods = cluster.get("pods", labels="medley.dev/job-name=copied")["items"]
    copies = [pod for pod in pods if pod["metadata"]["labels"]["medley.dev/role"] in ("trainer", "server", "coordinator")]
    names = [pod["metadata"]["name"] for pod in copies]
    suspend(cluster, "copied", True)
    wait_for("the job is suspended", lambda: cluster.phase("copied") == "Suspended")
    wait_for("its pods are deleted", lambda: not cluster.get("pods", labels="medley.dev/job-name=copied")["items"])
    wait_for("their units are free", lambda: units_used(cluster) == units_of_others(cluster, "copied"))
    for pod in copies:
        for field in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
            pod["metadata"].pop(field, None)
        pod["metadata"]["finalizers"] = ["example.com/keep"]
        pod.pop("status", None)
        pod["spec"].pop("nodeName", None)
        pod["spec"]["nodeSelector"] = {"example.com/absent": "true"}
    cluster.apply(*copies)
    message = wait_for("the copies are reported", lambda: said(cluster, "copied", "is a copy of a pod", names[0]))
    wait_for("they are deleted, but for their finalizers", lambda: all(
        pod["metadata"].get("deletionTimestamp") for pod in cluster.get("pods", labels="medley.dev/job-name=copied")["items"]))
    used, others = units_used(cluster), units_of_others(cluster, "copied")
    suspend(cluster, "copied", False)
    wait_for("the job is complete", lambda: cluster.phase("copied") == "Complete")
    trained = samples(cluster, "copied")
    for each in names:
        cluster.kubectl("patch", "pod", each, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))
    yield Row(f"copies of {len(copies)} signed pods under their names", f"{message} {used} units used, {others} by others; {trained} samples trained",
              used == others and trained == epochs * ROWS)


ATTACKS = (price, name, fifo, changed_data, exchanged_checkpoints, full_volume, edited_records, copied_pods)
