"""What MLflow's own client reads of an experiment's runs: one JSON object of params, tags, status and every figure of every step."""
import json
import sys

from mlflow.tracking import MlflowClient

client = MlflowClient(tracking_uri=sys.argv[1])
experiment = client.get_experiment_by_name(sys.argv[2])
runs = []
for run in client.search_runs([experiment.experiment_id], order_by=["attributes.start_time ASC"]):
    history = {
        key: [[one.step, one.value, one.timestamp] for one in client.get_metric_history(run.info.run_id, key)]
        for key in run.data.metrics
    }
    info = {"name": run.info.run_name, "status": run.info.status, "start": run.info.start_time, "end": run.info.end_time}
    runs.append({**info, "params": run.data.params, "tags": run.data.tags, "history": history})
print(json.dumps(runs))
